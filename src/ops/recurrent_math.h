#pragma once
/// The arithmetic of recurrent networks, in doubles: one routine for cells (one step) and sequences.
#include "ops/recurrent.h"

namespace lamina {

/// A function of a gate with its parameters filled in.
struct GateFunction {
  double (*apply)(double x, double alpha, double beta) = nullptr;
  double alpha = 0, beta = 0;
  double operator()(double x) const { return apply(x, alpha, beta); }
};

bool known_activation(std::string_view name);
/// "affine, elu, ..."
std::string activation_names();
/// The operator's activations; names are known (infer checks them).
std::vector<GateFunction> activations_of(const Recurrent& op);

enum class RecurrentKind : std::uint8_t { lstm, gru, rnn };

/// Inputs as numbers; absent ones are empty. Layouts as in recurrent.h, a cell being a sequence of one step.
struct RecurrentTask {
  RecurrentKind kind = RecurrentKind::rnn;
  Direction direction = Direction::forward;
  std::int64_t batch = 0, time = 1, input = 0, hidden = 0;
  std::vector<double> x, h, c, w, r, b, p;
  Ints lengths;
  double clip = 0;
  bool coupled = false;  ///< f = 1 - i
  bool linear_before_reset = false;
  std::vector<GateFunction> activations;  ///< of one direction, or of both
};

struct RecurrentResult {
  std::vector<double> y, h, c;
};

RecurrentResult run(const RecurrentTask& task);

}  // namespace lamina
