#pragma once
/// Vector code of recurrent networks (steps.simd.cc): products with packed weights, and one step in
/// time.
///
/// Hidden units are taken in blocks of one vector, with all gates of a block side by side: weights are packed
/// as [block][depth][gate][lanes], the input part of a step as [block][gate][lanes]. A block's gates are then
/// summed and activated without leaving registers. Units beyond the hidden size are padding.
#include <cstdint>

#include "base/cpu.h"

namespace lamina {

struct GateActivation {
  enum class Kind : std::uint8_t {
    affine,
    elu,
    hardsigmoid,
    leakyrelu,
    relu,
    scaledtanh,
    sigmoid,
    softplus,
    softsign,
    tanh,
    thresholdedrelu
  };
  Kind kind = Kind::tanh;
  float alpha = 0, beta = 0;
};

/// out[row] = init + rows[row] x panels.
struct PanelProduct {
  const float* const* rows = nullptr;
  std::int64_t row_count = 0, depth = 0;
  const float* panels = nullptr;
  const float* init = nullptr;  ///< [blocks][gates][lanes]
  float* out = nullptr;
  std::int64_t out_stride = 0;  ///< between rows
};

/// One step of `rows` sequences. States are [rows][padded].
struct RecurrentStep {
  std::int64_t rows = 0, hidden = 0, padded = 0;
  const float* gates = nullptr;  ///< the input part with its biases
  std::int64_t gates_stride = 0;
  const float* r = nullptr;  ///< recurrence panels of all gates (GRU: of z and r only, unless linear)
  const float* r_candidate = nullptr;  ///< GRU: the panels of h alone, unless linear
  const float* h = nullptr;
  float* next = nullptr;     ///< h after the step
  const float* c = nullptr;  ///< LSTM
  float* next_c = nullptr;
  float* z = nullptr;                ///< GRU, unless linear: made by gru_gates, read by gru_candidate
  float* reset_h = nullptr;          ///< likewise
  const float* peepholes = nullptr;  ///< [3][padded] in the order i, o, f, or null
  const float* r_bias = nullptr;     ///< GRU, linear: [padded]
  float clip = 0;                    ///< 0: none
  bool coupled = false;              ///< LSTM: f = 1 - i
  GateActivation activations[3];
};

struct RecurrentTable {
  std::int64_t lanes = 0;
  std::int64_t rows = 0;  ///< taken at once: batches are best cut into multiples of it
  /// By the number of gates, for blocks [begin, end).
  void (*product[5])(const PanelProduct&, std::int64_t begin, std::int64_t end) = {};
  using Step = void (*)(const RecurrentStep&, std::int64_t begin, std::int64_t end);
  Step lstm = nullptr, rnn = nullptr;
  Step gru_linear = nullptr;  ///< linear_before_reset: in one pass
  Step gru_gates = nullptr, gru_candidate = nullptr;
};

/// The table of that level of instructions.
const RecurrentTable& recurrent_table(Isa isa);

}  // namespace lamina
