#pragma once
/// What DynamicQuantizeLSTM shares with LSTM.
#include "formats/onnx/call.h"
#include "ops/recurrent.h"

namespace lamina::onnx {

/// hidden_size, or the last size of the recurrence weights.
std::int64_t hidden_size(const Call& c, ValueId r);

/// Blocks of `hidden` along axis 1 in another order.
ValueId reorder_gates(Call& c, ValueId v, const Ints& order, std::int64_t hidden);

struct LstmParts {
  ValueId x, h;     ///< input and initial state in place of the node's own, where given
  ValueId w, r, b;  ///< in the order f, i, c, o; the bias may be absent
};
/// The outputs Y, Y_h, Y_c. Everything else is read from the node as in LSTM.
Values build_lstm(Call& c, const LstmParts& parts, std::int64_t hidden);

/// A cell with the node's activations and clip for one of `count` directions.
LSTMCell lstm_cell(const Call& c, std::int64_t hidden, std::size_t direction, std::size_t count);

}  // namespace lamina::onnx
