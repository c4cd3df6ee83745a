#pragma once
/// What stands behind the public Model.
#include "formats/loaded.h"
#include "lamina/model.h"

namespace lamina {

class LoadedModel {
 public:
  explicit LoadedModel(const std::string& path);
  const std::string& path() const { return path_; }
  const Loaded& loaded() const { return loaded_; }
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  const std::vector<Port>& variables() const { return variables_; }
  const std::vector<std::string>& unsupported() const { return unsupported_; }

 private:
  std::string path_;
  Loaded loaded_;
  std::vector<Port> inputs_, outputs_, variables_;
  std::vector<std::string> unsupported_;
};

Port port_of(const std::string& name, const TensorType& type);

/// `onnx:Foo-13 ("node a", "node b"): reason`
std::string to_string(const Unsupported& unsupported);

}  // namespace lamina
