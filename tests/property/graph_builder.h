#pragma once
/// Builds a random graph node by node. Every node is evaluated as it is added: what gives no useful numbers
/// (not finite, huge, next to a discontinuity) is taken back.
#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/random.h"
#include "graph/graph.h"

namespace lamina::testing {

/// The tensor that input `index` of a graph gets for a seed: floats uniform with a scale that depends on the
/// index, integers as in seeded_tensor(); wide_tensor() when the input's name begins with "wide".
Tensor input_tensor(const Graph& graph, std::size_t index, const Dims& dims, std::uint64_t seed);

class GraphBuilder {
 public:
  /// `large`: sizes that keep several threads busy.
  explicit GraphBuilder(std::uint64_t seed, bool large = false) : random_(seed), large_(large) {}

  // Chance.
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(bound)));
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool percent(int chance) { return below(100) < chance; }
  double real(double low, double high) { return low + (high - low) * (random_.uniform() + 1.0) / 2; }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + below(static_cast<std::int64_t>(list.size())));
  }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(static_cast<std::int64_t>(list.size())))];
  }

  // Sizes that kernels treat differently.
  std::int64_t channels() {
    return large_ ? one_of<std::int64_t>({3, 8, 16, 17, 24, 32, 64})
                  : one_of<std::int64_t>({1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17});
  }
  std::int64_t extent() {
    return large_ ? one_of<std::int64_t>({7, 14, 28, 33, 57})
                  : one_of<std::int64_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13});
  }
  std::int64_t batch() { return one_of<std::int64_t>({1, 1, 1, 2, 3}); }

  // Values.
  ValueId input(ElementType type, Dims dims);
  /// Values over the type's whole range. Floats so are for the caller's next node only: no other picks them.
  ValueId wide_input(ElementType type, Dims dims);
  ValueId constant(Tensor tensor);
  ValueId wide_constant(ElementType type, const Dims& dims);
  /// Uniform in [low, high).
  ValueId floats(const Dims& dims, double low = -1, double high = 1);
  ValueId number(double value) { return constant(Tensor::scalar(static_cast<float>(value))); }
  ValueId ints(const Ints& values, bool scalar = false);
  /// A float constant like floats(); one that is in the graph already now and then.
  ValueId weights(const Dims& dims, double scale);
  /// The node's first output, unless it was taken back.
  std::optional<ValueId> add(Op op, std::vector<ValueId> inputs, int outputs = -1,
                             std::vector<Graph> bodies = {});
  /// Like add(), however large the result is; only the caller's next node may read it.
  std::optional<ValueId> add_unbounded(Op op, std::vector<ValueId> inputs);
  /// Like add(), all outputs.
  std::vector<ValueId> add_many(Op op, std::vector<ValueId> inputs, int outputs = -1,
                                std::vector<Graph> bodies = {});

  const Tensor& sample(ValueId v) const { return samples_[v.index]; }
  const Dims& dims(ValueId v) const { return sample(v).shape(); }
  std::size_t rank(ValueId v) const { return dims(v).size(); }
  ElementType element(ValueId v) const { return sample(v).element_type(); }
  bool is_f32(ValueId v) const { return element(v) == ElementType::f32; }
  double lowest(ValueId v) const;
  double largest(ValueId v) const;

  using Test = std::function<bool(ValueId)>;
  /// A value that nodes may read (no constant), mostly one of the last; nothing when none fits.
  std::optional<ValueId> pick(const Test& fits);
  std::optional<ValueId> pick_f32(std::size_t low_rank = 0, std::size_t high_rank = 99);
  /// While a value has the focus, nodes mostly read that one where it fits. An invalid id ends it.
  void focus(ValueId v) { focus_ = v; }
  /// The value that came last.
  ValueId newest() const { return pool_.back(); }
  /// A float value of that shape: an older one, a new input or a constant.
  ValueId partner(const Dims& dims);
  /// A shape that broadcasts to `dims`.
  Dims broadcastable(const Dims& dims);

  const Graph& graph() const { return graph_; }
  std::size_t nodes() const { return nodes_; }
  /// Results: all that nobody reads, some of what is read, seldom an input or a constant.
  Graph finish();

 private:
  bool fits(const Node& node, const std::vector<Tensor>& in) const;
  bool worth_keeping(NodeId node, const std::vector<Tensor>& in, const std::vector<Tensor>& out,
                     bool bounded) const;
  ValueId add_input(const char* name, ElementType type, const Dims& dims);
  std::vector<ValueId> add_node(Op op, std::vector<ValueId> inputs, int outputs, std::vector<Graph> bodies,
                                bool bounded);
  void keep_sample(ValueId v, Tensor tensor);

  std::size_t most_elements() const { return large_ ? 120000 : 6000; }

  SplitMix random_;
  bool large_;
  Graph graph_;
  std::vector<Tensor> samples_;  // by value
  std::vector<ValueId> pool_;    // inputs and outputs of nodes, in the order in which they came
  std::vector<ValueId> weights_;
  ValueId focus_;
  std::size_t nodes_ = 0;
};

}  // namespace lamina::testing
