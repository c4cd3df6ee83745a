/// Convolutions and transposed ones.
#include "tests/stack/problems.h"

namespace lamina::stack {
namespace {

struct Layer {
  std::int64_t groups;
  Dims x, w, y;  ///< the weights with an axis of groups in front where there are several
  Dims strides, dilations, pads;
};

const std::vector<Layer> kLayers{
    {1, {1, 16, 5, 7}, {16, 16, 1, 1}, {1, 16, 5, 7}, {1, 1}, {0, 0}, {0, 0}},
    {1, {1, 40, 5, 6}, {20, 40, 1, 1}, {1, 20, 5, 6}, {1, 1}, {0, 0}, {0, 0}},
    {1, {1, 64, 1, 1}, {300, 64, 1, 1}, {1, 300, 1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {1, {1, 200, 6, 6}, {24, 200, 1, 1}, {1, 24, 3, 3}, {2, 2}, {0, 0}, {0, 0}},
    {1, {1, 8, 6, 6}, {16, 8, 3, 3}, {1, 16, 6, 6}, {1, 1}, {0, 0}, {1, 1}},
    {1, {1, 3, 9, 9}, {16, 3, 3, 3}, {1, 16, 5, 5}, {2, 2}, {0, 0}, {1, 1}},
    {1, {1, 13, 6, 6}, {7, 13, 3, 3}, {1, 7, 6, 6}, {1, 1}, {0, 0}, {1, 1}},
    {1, {1, 72, 4, 4}, {12, 72, 3, 3}, {1, 12, 4, 4}, {1, 1}, {0, 0}, {1, 1}},
    {1, {1, 16, 8, 8}, {8, 16, 3, 3}, {1, 8, 4, 4}, {1, 1}, {1, 1}, {0, 0}},
    {1, {1, 8, 3, 3}, {1, 8, 3, 3}, {1, 1, 3, 3}, {1, 1}, {0, 0}, {1, 1}},
    {8, {1, 8, 6, 6}, {8, 1, 1, 3, 3}, {1, 8, 6, 6}, {1, 1}, {0, 0}, {1, 1}},
    {16, {1, 16, 6, 6}, {16, 1, 1, 3, 3}, {1, 16, 3, 3}, {2, 2}, {0, 0}, {1, 1}},
    {2, {1, 16, 5, 5}, {2, 8, 8, 3, 3}, {1, 16, 5, 5}, {1, 1}, {0, 0}, {1, 1}},
    {2, {1, 6, 5, 5}, {2, 5, 3, 3, 3}, {1, 10, 5, 5}, {1, 1}, {0, 0}, {1, 1}},
    {1, {1, 12, 20}, {8, 12, 5}, {1, 8, 20}, {1}, {0}, {2}},
    {1, {1, 200, 4}, {8, 200, 1}, {1, 8, 4}, {1}, {0}, {0}},
    {1, {1, 4, 4, 4, 4}, {8, 4, 3, 3, 3}, {1, 8, 4, 4, 4}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}},
};

struct Types {
  Type source, weights, result;
};
const std::vector<Types> kTypes{{Type::f32, Type::f32, Type::f32},
                                {Type::bf16, Type::bf16, Type::f32},
                                {Type::u8, Type::s8, Type::s32},
                                {Type::s8, Type::s8, Type::f32},
                                {Type::u8, Type::s8, Type::u8}};

enum class Lies { channels_last, plain, any };

Tag tag_of(Lies lies, std::size_t rank) {
  constexpr Tag kLast[] = {Tag::nwc, Tag::nhwc, Tag::ndhwc}, kPlain[] = {Tag::ncw, Tag::nchw, Tag::ncdhw};
  if (lies == Lies::any) return Tag::any;
  return lies == Lies::plain ? kPlain[rank - 3] : kLast[rank - 3];
}

/// The layer from its result to its source.
Layer reversed(Layer layer) {
  std::swap(layer.x, layer.y);
  const std::size_t outputs = layer.groups > 1 ? 1 : 0;
  std::swap(layer.w[outputs], layer.w[outputs + 1]);
  return layer;
}

template <class Forward>
Problem problem(const char* family, onednn::Primitive primitive, dnnl::algorithm algorithm,
                const Layer& layer, const Types& types, Lies lies, Stages stages) {
  const auto text = fmt::format("{} by {}, {} groups, {}, {}, {}", text_of(layer.x), text_of(layer.w),
                                layer.groups, text_of(types.source),
                                lies == Lies::plain           ? "plain"
                                : lies == Lies::channels_last ? "channels last"
                                                              : "any layout",
                                stages == Stages::none ? "alone" : "with bias and stages");
  return {family, primitive, text, [=] {
            using onednn::Desc;
            const auto tag = tag_of(lies, layer.x.size());
            const auto bias = stages == Stages::none ? Desc() : Desc({layer.y[1]}, Type::f32, Tag::x);
            return typename Forward::primitive_desc(
                onednn::engine(), dnnl::prop_kind::forward_inference, algorithm,
                Desc(layer.x, types.source, tag), Desc(layer.w, types.weights, Tag::any), bias,
                Desc(layer.y, types.result, tag), layer.strides, layer.dilations, layer.pads, layer.pads,
                attributes(stages, layer.y, 1));
          }};
}

}  // namespace

void add_convolutions(std::vector<Problem>& to) {
  for (const auto& layer : kLayers)
    for (const auto& types : kTypes)
      for (const auto lies : {Lies::channels_last, Lies::plain, Lies::any})
        for (const auto stages : {Stages::none, Stages::relu, Stages::many}) {
          to.push_back(problem<dnnl::convolution_forward>("convolution", onednn::Primitive::convolution,
                                                          dnnl::algorithm::convolution_direct, layer, types,
                                                          lies, stages));
          to.push_back(problem<dnnl::deconvolution_forward>("deconvolution", onednn::Primitive::deconvolution,
                                                            dnnl::algorithm::deconvolution_direct,
                                                            reversed(layer), types, lies, stages));
        }
}

}  // namespace lamina::stack
