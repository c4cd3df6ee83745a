/// What passes over tensors: pooling, element-wise operators, normalisation, resampling, reorders.
#include <algorithm>

#include "tests/stack/problems.h"

namespace lamina::stack {
namespace {

using dnnl::algorithm;
using onednn::Desc;
using onednn::engine;
using onednn::Primitive;
using onednn::user_scratch;
constexpr auto kForward = dnnl::prop_kind::forward_inference;

const std::vector<std::pair<const char*, Tag>> kLayouts{
    {"channels last", Tag::nhwc}, {"plain", Tag::nchw}, {"nChw8c", Tag::nChw8c}, {"nChw16c", Tag::nChw16c}};

void add_pictures(std::vector<Problem>& to, const char* layout, Tag tag, Type type) {
  for (const std::int64_t channels : {16, 21}) {
    const Dims dims{1, channels, 6, 6}, half{1, channels, 3, 3}, twice{1, channels, 12, 12};
    const Desc x(dims, type, tag), small(half, type, tag), large(twice, type, tag);
    const auto text = fmt::format("{}, {}, {}", text_of(dims), text_of(type), layout);
    for (const auto a : {algorithm::pooling_max, algorithm::pooling_avg_include_padding,
                         algorithm::pooling_avg_exclude_padding})
      to.push_back({"pooling", Primitive::pooling, text, [=] {
                      return dnnl::pooling_forward::primitive_desc(engine(), kForward, a, x, small, {2, 2},
                                                                   {3, 3}, {0, 0}, {1, 1}, {0, 0},
                                                                   user_scratch());
                    }});
    for (const auto a : {algorithm::resampling_nearest, algorithm::resampling_linear})
      to.push_back({"resampling", Primitive::resampling, text, [=] {
                      return dnnl::resampling_forward::primitive_desc(engine(), kForward, a, x, large,
                                                                      user_scratch());
                    }});
    to.push_back({"lrn", Primitive::lrn, text, [=] {
                    return dnnl::lrn_forward::primitive_desc(engine(), kForward,
                                                             algorithm::lrn_across_channels, x, x, 5, 1e-4f,
                                                             0.75f, 1.0f, user_scratch());
                  }});
    for (const auto a : {algorithm::binary_add, algorithm::binary_mul, algorithm::binary_max,
                         algorithm::binary_sub, algorithm::binary_div})
      for (const auto& other : {dims, Dims{1, channels, 1, 1}, Dims{1, 1, 1, 1}})
        to.push_back({"binary", Primitive::binary, text + " and " + text_of(other), [=] {
                        return dnnl::binary::primitive_desc(engine(), a, x, Desc(other, type, tag), x,
                                                            user_scratch());
                      }});
  }
}

void add_lines(std::vector<Problem>& to, Type type) {
  using enum algorithm;
  const auto text = std::string(text_of(type));
  const Desc flat({203}, type, Tag::a), rows({5, 77}, type, Tag::ab);
  for (const auto a :
       {eltwise_relu, eltwise_tanh,      eltwise_elu,       eltwise_square,      eltwise_abs,
        eltwise_sqrt, eltwise_linear,    eltwise_soft_relu, eltwise_hardsigmoid, eltwise_logistic,
        eltwise_exp,  eltwise_gelu_tanh, eltwise_gelu_erf,  eltwise_swish,       eltwise_log,
        eltwise_clip, eltwise_pow,       eltwise_round,     eltwise_mish,        eltwise_hardswish})
    to.push_back({"eltwise", Primitive::eltwise, fmt::format("203, {}, {}", text, static_cast<int>(a)), [=] {
                    return dnnl::eltwise_forward::primitive_desc(engine(), kForward, a, flat, flat, 1.0f,
                                                                 0.5f, user_scratch());
                  }});
  using dnnl::normalization_flags;
  for (const auto flags : {normalization_flags::none, normalization_flags::use_scale,
                           normalization_flags::use_scale | normalization_flags::use_shift})
    to.push_back({"layer normalization", Primitive::layer_normalization, "5x77, " + text, [=] {
                    return dnnl::layer_normalization_forward::primitive_desc(engine(), kForward, rows, rows,
                                                                             1e-5f, flags, user_scratch());
                  }});
}

/// How tensors and weights lie before and behind it.
void add_reorders(std::vector<Problem>& to) {
  const std::vector<std::pair<Dims, std::vector<Tag>>> kinds{
      {{1, 19, 5, 6}, {Tag::nchw, Tag::nhwc, Tag::nChw8c, Tag::nChw16c}},
      {{35, 19, 3, 3},
       {Tag::oihw, Tag::hwio, Tag::OIhw8i8o, Tag::OIhw16i16o, Tag::OIhw4i16o4i, Tag::Ohwi16o}},
      {{3, 8, 8, 3, 3}, {Tag::goihw, Tag::gOIhw8i8o, Tag::gOIhw16i16o}},
      {{16, 1, 1, 3, 3}, {Tag::goihw, Tag::Goihw8g, Tag::Goihw16g}},
      {{70, 90}, {Tag::ab, Tag::ba, Tag::BA16a16b, Tag::BA16a32b}}};
  for (const auto& [dims, tags] : kinds)
    for (const auto from : tags)
      for (const auto into : tags)
        for (const auto& [a, b] : {std::pair{Type::f32, Type::f32}, std::pair{Type::f32, Type::bf16},
                                   std::pair{Type::bf16, Type::f32}, std::pair{Type::bf16, Type::bf16},
                                   std::pair{Type::s8, Type::s8}, std::pair{Type::f32, Type::s8}})
          to.push_back({"reorder", Primitive::reorder,
                        fmt::format("{}, {} to {}, layouts {} to {}", text_of(dims), text_of(a), text_of(b),
                                    static_cast<int>(from), static_cast<int>(into)),
                        [=, dims = dims, a = a, b = b] {
                          return dnnl::reorder::primitive_desc(engine(), Desc(dims, a, from), engine(),
                                                               Desc(dims, b, into), user_scratch());
                        }});
}

}  // namespace

void add_passes(std::vector<Problem>& to) {
  for (const auto type : {Type::f32, Type::bf16}) {
    for (const auto& [layout, tag] : kLayouts) add_pictures(to, layout, tag, type);
    add_lines(to, type);
  }
  add_reorders(to);
}

}  // namespace lamina::stack
