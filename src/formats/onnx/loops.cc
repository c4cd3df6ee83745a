#include "formats/onnx/loops.h"

#include "formats/building.h"
#include "ops/shaping.h"

namespace lamina::onnx {

void add_stacked(Graph& body, const Values& stacked, Ints& axes) {
  for (std::size_t i = 0; i < stacked.size(); ++i) {
    const auto axis = body.add_constant(Tensor::of<std::int64_t>({1}, Ints{axes[i]}));
    const auto v = body.add(Unsqueeze{}, {stacked[i], axis});
    const auto& shape = body.type(v).shape;
    if (axes[i] < 0 && !shape.ranked())
      throw NotSupported{"a scan output of unknown rank with an axis counted from the end"};
    if (axes[i] < 0) axes[i] += static_cast<std::int64_t>(shape.rank());
    body.add_result(body.value(v).name, v);
  }
}

}  // namespace lamina::onnx
