#include "formats/ir/converters.h"

#include <algorithm>
#include <array>

#include "base/no_destructor.h"
#include "formats/ir/text.h"
#include "ops/operators.h"

namespace lamina::ir {
namespace {

/// Layers that are no operators of lamina.
struct FurtherLayer {
  std::string_view name;
  int opset;
  bool adopted = false;  ///< old files call it an extension or experimental
};
constexpr std::array kFurther = {FurtherLayer{"Col2Im", 15},
                                 FurtherLayer{"Const", 1},
                                 FurtherLayer{"EmbeddingBagOffsets", 15},
                                 FurtherLayer{"EmbeddingBagOffsetsSum", 3},
                                 FurtherLayer{"EmbeddingBagPacked", 15},
                                 FurtherLayer{"EmbeddingBagPackedSum", 3},
                                 FurtherLayer{"EmbeddingSegmentsSum", 3},
                                 FurtherLayer{"ExperimentalDetectronPriorGridGenerator", 6, true},
                                 FurtherLayer{"ExperimentalDetectronTopKROIs", 6, true},
                                 FurtherLayer{"GroupConvolution", 1},
                                 FurtherLayer{"GroupConvolutionBackpropData", 1},
                                 FurtherLayer{"I420toBGR", 8},
                                 FurtherLayer{"I420toRGB", 8},
                                 FurtherLayer{"NV12toBGR", 8},
                                 FurtherLayer{"NV12toRGB", 8},
                                 FurtherLayer{"Parameter", 1},
                                 FurtherLayer{"Result", 1},
                                 FurtherLayer{"Reverse", 1},
                                 FurtherLayer{"TensorIterator", 1},
                                 FurtherLayer{"Xor", 1}};

/// PaddlePaddle's broadcasting lays input 1 along the axes of input 0 from `axis` on, without its trailing
/// ones.
ValueId pdpd_operand(LayerContext& c) {
  const Shape a = c.shape(0), b = c.shape(1);
  const auto axis = c.has("axis") ? c.integers("axis") : Ints{-1};
  c.require(axis.size() == 1, "axis has {} values, wanted one", axis.size());
  c.require(a.ranked() && b.known(), "auto_broadcast=\"pdpd\" with unknown shapes");
  Dims sizes = b.sizes();
  const auto rank = static_cast<std::int64_t>(a.rank());
  const auto from = axis[0] == -1 ? rank - static_cast<std::int64_t>(sizes.size()) : axis[0];
  while (!sizes.empty() && sizes.back() == 1) sizes.pop_back();
  const auto taken = static_cast<std::int64_t>(sizes.size());
  c.require(from >= 0 && from <= rank - taken, "axis {} does not fit {} and {}", axis[0], to_string(a),
            to_string(b));
  sizes.resize(static_cast<std::size_t>(rank - from), 1);
  const ValueId pattern = c.constant(Ints(sizes.begin(), sizes.end()), "aligned_shape");
  return c.add(c.plain_op("Reshape"), {c.in(1), pattern}, "aligned");
}

/// The layer's inputs as numpy would broadcast them.
std::vector<ValueId> broadcast_inputs(LayerContext& c) {
  auto inputs = c.all_inputs();
  const std::string mode = lower(c.text("auto_broadcast", "numpy"));
  if (mode == "pdpd") {
    c.want_inputs(2, 2);
    inputs[1] = pdpd_operand(c);
  } else if (mode == "none" || mode == "explicit") {
    for (std::size_t i = 1; i < inputs.size(); ++i)
      c.require(c.shape(0).fits(c.shape(i)), "shapes {} and {} differ, and auto_broadcast is none",
                to_string(c.shape(0)), to_string(c.shape(i)));
  } else {
    c.require(mode == "numpy", "auto_broadcast=\"{}\", wanted numpy, pdpd or none", mode.substr(0, 80));
  }
  return inputs;
}

}  // namespace

const std::map<std::string, LayerType, std::less<>>& layer_types() {
  static const ProcessLifetime all([] {
    std::map<std::string, LayerType, std::less<>> out;
    for (const auto& name : operators().names())
      if (const auto& info = operators().find(name)->info(); info.opset != 0)
        out.emplace(lower(name), LayerType{name, info.opset, has(info.traits, Trait::adopted)});
    for (const auto& [name, opset, adopted] : kFurther)
      out.emplace(lower(name), LayerType{std::string(name), opset, adopted});
    return out;
  });
  return *all;
}

const ConverterTable& ageless_converters() {
  static const ProcessLifetime all([] {
    ConverterTable t;
    register_embedding(t);
    register_detectron(t);
    return t;
  });
  return *all;
}

const ConverterTable& converters() {
  static const ProcessLifetime all([] {
    ConverterTable t = ageless_converters();
    register_windows(t);
    register_special(t);
    register_control(t);
    return t;
  });
  return *all;
}

void convert(LayerContext& c) {
  if (convert_custom(c)) return;
  const Layer& layer = c.layer();
  const std::string type = lower(layer.type);
  const auto known = layer_types().find(type);
  if (layer.opset == 0 && !(known != layer_types().end() && known->second.adopted))
    throw NotSupported{fmt::format("version \"{}\"", layer.version.substr(0, 80))};
  if (layer.opset > kNewestOpset)
    throw NotSupported{fmt::format("opset{}, known are 1 to {}", layer.opset, kNewestOpset)};
  if (known == layer_types().end()) throw NotSupported{};
  if (const int first = known->second.opset; layer.opset != 0 && layer.opset < first)
    throw NotSupported{fmt::format("opset{}, it is known from opset{} on", layer.opset, first)};
  if (const Converter converter = converters().find(type)) return converter(c);
  Op op = c.op(known->second.name);
  c.finish(std::move(op), c.has("auto_broadcast") ? broadcast_inputs(c) : c.all_inputs());
}

}  // namespace lamina::ir
