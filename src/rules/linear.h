#pragma once
/// Arithmetic with constants: single steps, and what several of them do together, x * factor + shift.
#include <functional>

#include "rules/support.h"

namespace lamina {

/// A Multiply, Divide, Add or Subtract of floats with exactly one constant operand; or a Negative, which has
/// none and counts as a factor of -1.
struct LinearStep {
  enum class Kind : std::uint8_t { times, over, plus, minus, minus_from };  ///< the last: constant - x
  NodeId node;
  Kind kind = Kind::times;
  ValueId x, constant;

  bool scales() const { return kind == Kind::times || kind == Kind::over || kind == Kind::minus_from; }
  bool shifts() const { return kind != Kind::times && kind != Kind::over; }
  Shape constant_shape(const Graph& graph) const;
  std::string constant_label(const Match& m) const { return m.label(constant.valid() ? constant : x); }
};
/// For the roots of rules.
Pattern linear_steps();
/// Longer runs are fused bit by bit.
constexpr std::size_t kMostSteps = 256;

std::optional<LinearStep> linear_step(const Graph& graph, NodeId node);
/// Nothing where a graph's input, a constant or something else gives the value.
std::optional<LinearStep> step_that_gives(const Graph& graph, ValueId value);

/// True if the step's constant is finite, does not divide by 0 and does not make x larger.
Verdict is_usable(const Match& m, const LinearStep& step);

/// The steps from `lowest` up that `joins` takes, each of them read by the next one only. Nodes that are to
/// stay as they are end the run.
using LinearSteps = std::vector<LinearStep>;
LinearSteps steps_above(const Match& m, const LinearStep& lowest,
                        const std::function<bool(const LinearStep&)>& joins);
/// The step that alone reads what this one gives, unless it is to stay as it is.
std::optional<LinearStep> step_below(const Match& m, const LinearStep& step);

/// Numbers that broadcast as a tensor of these dimensions does.
struct Numbers {
  Dims dims;
  std::vector<double> values;
  bool all(double number) const;
};
Numbers operator/(const Numbers& a, const Numbers& b);
/// One for each channel of numbers that are one, or one for each channel.
std::vector<double> per_channel(const Numbers& numbers, std::size_t channels);

/// The numbers of the step's constant. Denormal ones count as 0.
Numbers numbers_of(const Graph& graph, const LinearStep& step);

/// x * factor + shift, in double.
struct Linear {
  Numbers factor{{}, {1}}, shift{{}, {0}};
  Numbers largest{{}, {0}};  ///< of what was added on the way, at the scale of the result

  void then(LinearStep::Kind kind, Numbers constant);
  /// What was added is so large beside what is left that x was rounded by it: the model may mean that. How
  /// large x is nobody knows; where no larger sum is left it is taken to be about 1.
  bool rounds() const;
  /// What is added is so large that x is taken to be about as large, with the other sign: a mean that is
  /// subtracted. Products of x would lose digits that x has, if they were made before the sum.
  bool cancels() const;
  double largest_added() const;  ///< at the scale of the result
  /// Steps from the lowest up.
  static Linear of(const Graph& graph, const LinearSteps& steps);
};

/// In this type all that is left of a number is too small to count: constants' denormals of f32 are 0.
bool is_lost(double number, double rounded, ElementType type);
/// Rounded once; a refusal where that is not finite, or where a number is lost.
Found<Tensor> rounded(const Numbers& numbers, ElementType type, const char* what);

}  // namespace lamina
