#pragma once
/// Poolings over the spatial axes of N, C, spatial...; global ones are ReduceMean and ReduceMax.
#include "ops/convolution.h"

namespace lamina {

/// How the number of windows is rounded. ceil_torch drops a last window that would start in the end padding.
enum class RoundingType : std::uint8_t { floor, ceil, ceil_torch };
template <>
inline constexpr std::array enum_names<RoundingType> = {std::string_view("floor"), std::string_view("ceil"),
                                                        std::string_view("ceil_torch")};

/// Largest element of each window, NaN where there is one; a window without elements gives the type's lowest
/// finite value.
/// Input: x. Output 0: values. Output 1, when the node has two: the position of the first largest element,
/// flattened over the dims from `axis` on (storage_order 1: the spatial part column by column, as in ONNX).
struct MaxPool : Window {
  static constexpr OpInfo info{"MaxPool",
                               1,
                               1,
                               1,
                               Trait::epilogue | Trait::host | Trait::selects,
                               "Maximum over windows, optionally with indices",
                               1,
                               OpFamily::pooling};
  Ints kernel;
  RoundingType rounding_type = RoundingType::floor;
  ElementType index_element_type = ElementType::i64;
  std::int64_t axis = 0;
  std::int64_t storage_order = 0;
  template <class V>
  void visit(V& v) {
    Window::visit(v);
    v("kernel", kernel);
    v("rounding_type", rounding_type);
    v("index_element_type", index_element_type);
    v("axis", axis);
    v("storage_order", storage_order, Owner::lamina);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = c.out() * product_of(kernel)}; }
};

/// Mean of each window. Input: x. The divisor counts the positions inside the picture (exclude_pad) or inside
/// the padded frame; a window with none gives 0. Means of integers are rounded to the nearest, halves to
/// even.
/// `sums`: f32 gives the means of integers of 8 bits as they are; undefined rounds them to integers.
struct AvgPool : Window {
  static constexpr OpInfo info{
      "AvgPool",        1, 1, 1, Trait::epilogue | Trait::host | Trait::sums, "Mean over windows", 1,
      OpFamily::pooling};
  Ints kernel;
  bool exclude_pad = false;
  RoundingType rounding_type = RoundingType::floor;
  ElementType sums = ElementType::undefined;
  template <class V>
  void visit(V& v) {
    Window::visit(v);
    v("kernel", kernel);
    v("exclude-pad", exclude_pad);
    v("rounding_type", rounding_type);
    v("sums", sums, Owner::lamina);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = c.out() * product_of(kernel)}; }
};

/// Inputs: x, sizes of the output's spatial dims. Window i of an axis covers floor(i*in/out) ..
/// ceil((i+1)*in/out). `sums` as in AvgPool.
struct AdaptiveAvgPool {
  static constexpr OpInfo info{
      "AdaptiveAvgPool", 2, 2, 1, Trait::sums, "Mean over windows that fit a given output size", 8,
      OpFamily::pooling};
  ElementType sums = ElementType::undefined;
  template <class V>
  void visit(V& v) {
    v("sums", sums, Owner::lamina);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// As AdaptiveAvgPool. Output 1: positions of the maxima, flattened over the spatial dims.
struct AdaptiveMaxPool {
  static constexpr OpInfo info{
      "AdaptiveMaxPool", 2, 2, 2, Trait::selects, "Maximum over windows that fit a given output size", 8,
      OpFamily::pooling};
  ElementType index_element_type = ElementType::i64;
  template <class V>
  void visit(V& v) {
    v("index_element_type", index_element_type);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

}  // namespace lamina
