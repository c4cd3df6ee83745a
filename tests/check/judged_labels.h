#pragma once
/// Graphs whose results are indices or labels, and what is judged of stored ones.
#include <gtest/gtest.h>

#include <functional>

#include "base/random.h"
#include "check/stored_outputs.h"
#include "graph/text.h"
#include "interpreter/interpreter.h"
#include "ops/eval.h"
#include "ops/operators.h"

namespace lamina::checking {

using Labels = std::vector<std::int64_t>;

/// A graph on its inputs, and its results as they are right.
class Judged {
 public:
  Judged(const std::string& text, std::vector<Tensor> inputs)
      : graph_(parse_graph(text, operators())),
        inputs_(std::move(inputs)),
        exact_(interpret(graph_, inputs_)),
        judge_(graph_, inputs_, exact_) {}
  Judged(const Judged&) = delete;

  const Tensor& exact(std::size_t i = 0) const { return exact_[i]; }
  Labels labels(std::size_t i = 0) const { return to_numbers<std::int64_t>(exact_[i]); }
  Agreement stored(const Labels& labels, std::size_t i = 0) {
    const auto& own = exact_[i];
    std::vector<double> values(labels.begin(), labels.end());
    return stored(from_doubles(own.element_type(), own.shape(), values), i);
  }
  Agreement stored(const Tensor& tensor, std::size_t i = 0) {
    return judge_.judge(i, exact_[i], tensor, true);
  }
  Agreement changed(std::size_t element, std::int64_t label, std::size_t i = 0) {
    auto all = labels(i);
    all[element] = label;
    return stored(all, i);
  }

 private:
  Graph graph_;
  std::vector<Tensor> inputs_, exact_;
  StoredOutputs judge_;
};

#define RIGHT(...)                       \
  do {                                   \
    const Agreement a = __VA_ARGS__;     \
    EXPECT_TRUE(a.ok()) << to_string(a); \
    EXPECT_TRUE(a.loss) << to_string(a); \
  } while (false)
#define WRONG(...)                        \
  do {                                    \
    const Agreement a = __VA_ARGS__;      \
    EXPECT_FALSE(a.ok()) << to_string(a); \
  } while (false)

inline Tensor floats(const Dims& dims, std::uint64_t seed) {
  return seeded_tensor(ElementType::f32, dims, seed);
}

/// Scores of 8 classes for each of 50 rows: class c and class c + 4 are always equal.
inline std::string pairs_of_classes(const std::string& end) {
  return R"(graph (x: f32[50,6]) -> (y) {
  half = const f32[6,4] seed(3)
  w = Concat(half, half) axis=1
  scores = MatMul(x, w)
  k = const i64[] {1}
)" + end +
         "}\n";
}

inline const std::string kArgMax =
    pairs_of_classes("  v, y = TopK(scores, k) axis=1 index_element_type=i64\n");

inline Labels each(Labels labels, const std::function<std::int64_t(std::int64_t)>& f) {
  for (auto& l : labels) l = f(l);
  return labels;
}

}  // namespace lamina::checking
