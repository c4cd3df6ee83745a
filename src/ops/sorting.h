#pragma once
/// Order, search and counting.
#include "ops/eval.h"

namespace lamina {

enum class TopKMode : std::uint8_t { max, min };
template <>
inline constexpr std::array enum_names<TopKMode> = {std::string_view("max"), std::string_view("min")};
enum class TopKSort : std::uint8_t { none, index, value };
template <>
inline constexpr std::array enum_names<TopKSort> = {std::string_view("none"), std::string_view("index"),
                                                    std::string_view("value")};

/// The k largest or smallest along an axis; of equal values the one with the lower index is first. NaN is the
/// largest. Inputs: x, k (one element). Outputs: values, indices.
struct TopK {
  static constexpr OpInfo info{"TopK",      2,
                               2,           2,
                               Trait::none, "The k largest or smallest elements along an axis",
                               1,           OpFamily::detection};
  std::int64_t axis = -1;
  TopKMode mode = TopKMode::max;
  TopKSort sort = TopKSort::value;
  ElementType index_element_type = ElementType::i32;
  bool stable = false;
  template <class V>
  void visit(V& v) {
    v("axis", axis);
    v("mode", mode);
    v("sort", sort);
    v("index_element_type", index_element_type);
    v("stable", stable);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Indices of elements that are not 0, as [rank, count] in row-major order. Inputs: x.
struct NonZero {
  static constexpr OpInfo info{
      "NonZero",          1, 1, 1, Trait::data_dependent, "Indices of the elements that are not zero", 3,
      OpFamily::detection};
  ElementType output_type = ElementType::i64;
  template <class V>
  void visit(V& v) {
    v("output_type", output_type);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Distinct elements of the flattened input, or distinct slices along an axis. Inputs: x, axis (one element,
/// optional). Outputs: values, index of each value's first occurrence, for each element (slice) the index of
/// its value, counts.
struct Unique {
  static constexpr OpInfo info{
      "Unique", 1, 2, 4, Trait::data_dependent, "Distinct elements or slices", 10, OpFamily::detection};
  bool sorted = true;  ///< ascending, else in order of first occurrence
  ElementType index_element_type = ElementType::i64;
  ElementType count_element_type = ElementType::i64;
  template <class V>
  void visit(V& v) {
    v("sorted", sorted);
    v("index_element_type", index_element_type);
    v("count_element_type", count_element_type);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Where each value would be inserted into its row to keep it sorted. Inputs: sorted [..., n] (or [n]),
/// values.
struct SearchSorted {
  static constexpr OpInfo info{
      "SearchSorted", 2, 2, 1, Trait::none, "Places of values in sorted rows", 15, OpFamily::detection};
  bool right_mode = false;  ///< after equal elements instead of before
  ElementType output_type = ElementType::i64;
  template <class V>
  void visit(V& v) {
    v("right_mode", right_mode);
    v("output_type", output_type);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// The bucket of each element. Inputs: x, sorted boundaries [n].
struct Bucketize {
  static constexpr OpInfo info{"Bucketize", 2,
                               2,           1,
                               Trait::none, "The interval between sorted boundaries that holds a value",
                               3,           OpFamily::detection};
  ElementType output_type = ElementType::i64;
  bool with_right_bound = true;  ///< an interval includes its right boundary, else its left one
  template <class V>
  void visit(V& v) {
    v("output_type", output_type);
    v("with_right_bound", with_right_bound);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

}  // namespace lamina
