#pragma once
/// Weights of convolutions and matrix products, seen by output and input channel.
#include "rules/support.h"

namespace lamina {

enum class Side { outputs, inputs };
/// Whether the node has float weights that can be scaled along these channels, and no epilogue yet: constant
/// weights, or along the outputs weights that are stored in few bits.
Verdict foldable(const Match& m, NodeId host, Side side = Side::inputs);
/// The constant weights, each element multiplied by the factor of its output or input channel. A refusal if
/// they are not finite, or if one underflows in its type and matters: compared with the others of its input
/// channel, and with the new bias (by output channel; empty: unknown).
Found<Tensor> scaled_weights(const Graph& graph, const Node& host, Side side,
                             const std::vector<double>& factors, const std::vector<double>& bias);
/// For a Convolution, or a MatMul with one matrix: the sums over weights of a number for each input channel,
/// by output channel.
std::vector<double> weighted_sums(const Graph& graph, const Node& host, const std::vector<double>& numbers);
/// The channels that constant weights are for.
std::size_t input_channels(const Graph& graph, const Node& host);
std::size_t output_channels(const Graph& graph, const Node& host);
/// The constant bias by channel, zeros if there is none.
std::vector<double> bias_values(const Graph& graph, const Node& host, std::size_t channels);
/// Whether the bias is absent or a constant with one value per channel.
Verdict bias_is_constant(const Graph& graph, const Node& host);
bool all_finite(const std::vector<double>& values);
bool all_finite(const Tensor& tensor);

/// One factor for each output channel, in the shape in which it meets weights that are no constant.
Tensor output_factors(const Graph& graph, const Node& host, const std::vector<double>& factors);

/// What a host gets in place of what it has; invalid or empty: it keeps that.
struct Replaced {
  Tensor weights;
  Tensor factors;  ///< of weights that are no constant
  std::vector<double> bias;
  ValueId input;
};
ValueId rebuilt(Rewrite& r, NodeId host, const Replaced& parts);

/// The axis of a host's weights along which its outputs lie; their rank where they are one column.
std::size_t output_axis(const Graph& graph, const Node& host);

/// Convolution weights and matrices as [rows][columns][inner], those of a batch one behind the other; both
/// channels of an element follow from its row and column.
struct WeightsMatrix {
  std::size_t rows, columns = 1, inner = 1;
  std::size_t groups = 1;
  bool rows_are_outputs;

  WeightsMatrix(const Node& host, const Dims& weights);
  /// The channel that an element's column stands for: each group has its own.
  std::size_t column_channel(std::size_t row, std::size_t column) const {
    return row / (rows / groups) * columns + column;
  }
  std::size_t column_channels() const { return groups * columns; }
  std::size_t outputs() const { return rows_are_outputs ? rows : column_channels(); }
  std::size_t inputs() const { return rows_are_outputs ? column_channels() : rows; }
  /// The output channel of an element.
  std::size_t output(std::size_t element) const {
    const auto line = element / inner, row = line / columns % rows;
    return rows_are_outputs ? row : column_channel(row, line % columns);
  }
  /// f(element, input channel, output channel) for each element of the first matrix.
  template <class F>
  void for_each(F&& f) const {
    for (std::size_t row = 0, i = 0; row < rows; ++row)
      for (std::size_t column = 0; column < columns; ++column) {
        const auto other = column_channel(row, column);
        for (std::size_t k = 0; k < inner; ++k, ++i) rows_are_outputs ? f(i, other, row) : f(i, row, other);
      }
  }
};

}  // namespace lamina
