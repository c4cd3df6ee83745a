#pragma once
/// Results that are indices of a TopK (ArgMax and ArgMin are one with k = 1), or are made of such indices.
#include <optional>
#include <vector>

#include "check/exact_numbers.h"
#include "graph/graph.h"

namespace lamina::checking {

/// The way of the indices from a TopK to a result: through operators that move elements, and through
/// element-wise ones and tables of labels, whose other operands do not depend on the numbers in the inputs.
struct IndexTrail {
  struct Step {
    NodeId node;
    std::size_t input = 0, output = 0;  ///< by which the indices come in and leave
    std::size_t operands = 0;           ///< where the node's other inputs begin in `watched`
  };
  NodeId chooser;  ///< the TopK
  std::vector<Step> steps;
  /// The values to know of a run: the TopK's scores and indices, then what the steps read besides indices.
  std::vector<ValueId> watched;
};

/// For each result the trail, or nothing where it consists of something else.
std::vector<std::optional<IndexTrail>> index_trails(const Graph& graph);

/// Finds the indices from which the elements of a result were made.
class IndexReader {
 public:
  /// `watched`: the trail's values in a run on which shapes are as in the result.
  IndexReader(const Graph& graph, const IndexTrail& trail, std::vector<Tensor> watched);

  /// False where elements of the result cannot be followed, or that would take too long.
  bool possible() const { return possible_; }
  const Tensor& scores() const { return watched_[0]; }
  const Tensor& indices() const { return watched_[1]; }
  /// For each element of the result the element of the TopK's indices from which it is made.
  const std::vector<std::size_t>& sources() const { return sources_; }
  /// For each element of such a result the indices for which it would be that number, but for roundings of
  /// floats: more than one where labels repeat; none where no index gives it. An index may lie outside of the
  /// axis.
  std::vector<std::vector<std::int64_t>> read(const Tensor& result) const;

 private:
  using Indices = std::vector<std::vector<std::int64_t>>;
  struct Made {
    std::vector<Exact> numbers;
    std::vector<double> roundings;  ///< how far each may be off; empty where none is
  };
  /// What the step makes of `t`.
  Tensor follow(const IndexTrail::Step& step, const Tensor& t) const;
  /// The result if every index were this one; nothing if that is an error, as outside of a table.
  std::optional<Made> result_of(std::int64_t index) const;
  /// What the step makes of a tensor of these numbers.
  std::vector<double> numbers_behind(const IndexTrail::Step& step, ElementType type, const Dims& shape,
                                     const std::vector<double>& numbers) const;
  /// How far the numbers `made` of `t` change if those of `t` are off by `roundings`.
  std::vector<double> changes_behind(const IndexTrail::Step& step, const Tensor& t, const Tensor& made,
                                     const std::vector<double>& roundings) const;
  /// How far engines may be off behind the step, which makes `made` of `t`: by its own rounding, and by what
  /// it makes of the `roundings` before it. Empty where all numbers are exact: whole ones, those that are
  /// looked up in a table, and an index that is only converted.
  std::vector<double> roundings_behind(const IndexTrail::Step& step, const Tensor& t, const Tensor& made,
                                       const std::vector<double>& roundings) const;
  void find_sources();
  void find_line();
  Indices read_by_line(const std::vector<Exact>& values) const;
  Indices read_by_trying(const Tensor& result) const;

  const Graph& graph_;
  const IndexTrail& trail_;
  std::vector<Tensor> watched_;
  std::int64_t size_ = 0;  ///< of the axis of scores
  std::vector<std::size_t> sources_;
  /// True if the result is base_ + slope_ * index. Else results are made for each index.
  bool linear_ = false;
  std::vector<Exact> base_, slope_;
  bool possible_ = false;
};

}  // namespace lamina::checking
