#pragma once
/// A case made ready: its graph, its numbers, and the right value of any element of its result.
#include "tests/sweep/case.h"
#include "tests/sweep/stages.h"

namespace lamina::sweep {

class Layer {
 public:
  explicit Layer(const Case& c);

  const Graph& graph() const { return graph_; }
  NodeId node() const { return node_; }
  /// One per input of the node, plain; those of constants, too.
  const std::vector<Tensor>& inputs() const { return inputs_; }
  const Dims& result() const { return y_; }
  /// The element of the result with that index in plain order.
  Expected at(std::int64_t index) const;
  /// Indices worth looking at: corners, borders, edges of blocks, and some at random.
  std::vector<std::int64_t> points(std::size_t count) const;

 private:
  void make_graph();
  void make_numbers();
  Expected sum_at(const Dims& p) const;
  Expected convolution_at(const Dims& p) const;
  Expected deconvolution_at(const Dims& p) const;
  Expected product_at(const Dims& p) const;

  Case c_;
  Dims y_, channel_dims_;
  std::size_t channel_axis_ = 1;
  Graph graph_;
  NodeId node_;
  std::vector<Tensor> inputs_;
  std::vector<float> x_, w_, bias_;           ///< as numbers
  std::vector<std::vector<float>> operands_;  ///< by stage: of channels or of the whole tensor
};

}  // namespace lamina::sweep
