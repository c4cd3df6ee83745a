#pragma once
/// Ports as the C interface shows them: with arrays of texts that stay.
#include <memory>
#include <string>
#include <vector>

#include "lamina/c.h"
#include "lamina/model.h"

struct lamina_c_tensor {
  lamina::Tensor tensor;
};

namespace lamina::c_interface {

/// A list of ports, with what their structs point to.
class Ports {
 public:
  explicit Ports(std::vector<Port> ports);
  std::size_t size() const noexcept { return ports_.size(); }
  /// Fills the caller's struct. Throws Error(bad_input) for an index beyond the end.
  void show(std::size_t index, lamina_c_port* to) const;
  /// The index of the port of that name, or LAMINA_C_NONE.
  std::size_t find(const char* name) const;

 private:
  struct Shown {
    std::vector<const char*> dimension_names;
    std::string text;
    lamina_c_tensor value;
  };
  std::vector<Port> ports_;
  std::vector<Shown> shown_;
};

/// The ports of a model, by their kind.
class PortsOfModel {
 public:
  PortsOfModel(const std::vector<Port>& inputs, const std::vector<Port>& outputs,
               const std::vector<Port>& variables)
      : kinds_{Ports(inputs), Ports(outputs), Ports(variables)} {}
  /// Throws Error(bad_input) for a number that is no kind.
  const Ports& of(std::int32_t kind) const;

 private:
  Ports kinds_[3];
};

}  // namespace lamina::c_interface
