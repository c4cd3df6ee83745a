#pragma once
/// What stands behind the public Model.
#include "api/ports.h"
#include "formats/loaded.h"
#include "lamina/model.h"

namespace lamina {

class LoadedModel {
 public:
  LoadedModel(const ModelSource& source, const ReadOptions& options);
  const std::string& path() const { return path_; }  ///< or what the user calls a model in memory
  const Loaded& loaded() const { return loaded_; }
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  /// A printable line each.
  const std::vector<std::string>& warnings() const { return warnings_; }
  const std::vector<Port>& variables() const { return variables_; }
  const std::vector<std::string>& unsupported() const { return unsupported_; }
  /// Throws Error(unsupported) that names all types that it has room for.
  void require_supported() const;

 private:
  std::string path_;
  Loaded loaded_;
  std::vector<Port> inputs_, outputs_, variables_;
  std::vector<std::string> warnings_, unsupported_;
};

/// `onnx:Foo-13 ("node a", "node b"): reason`
std::string to_string(const Unsupported& unsupported);

}  // namespace lamina
