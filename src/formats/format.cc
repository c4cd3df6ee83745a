#include "formats/format.h"

#include <algorithm>
#include <array>

#include "base/no_destructor.h"

namespace lamina {
namespace {

using Names = std::array<std::string, 5>;

/// Names in the order of the enumeration.
const Names& names() {
  static const ProcessLifetime all([] {
    return Names{"ONNX", "OpenVINO IR", "Caffe", "TensorFlow", "oneDNN Graph"};
  });
  return *all;
}

}  // namespace

const std::string& name_of(ModelFormat format) { return names().at(static_cast<std::size_t>(format)); }

std::optional<ModelFormat> model_format_named(std::string_view name) {
  const auto it = std::find(names().begin(), names().end(), name);
  if (it == names().end()) return std::nullopt;
  return static_cast<ModelFormat>(it - names().begin());
}

}  // namespace lamina
