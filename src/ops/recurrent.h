#pragma once
/// Recurrent cells and sequences. Gates stand in the order f, i, c, o (LSTM) and z, r, h (GRU).
#include "ops/eval.h"

namespace lamina {

enum class Direction : std::uint8_t { forward, reverse, bidirectional };
template <>
inline constexpr std::array enum_names<Direction> = {std::string_view("forward"), std::string_view("reverse"),
                                                     std::string_view("bidirectional")};

/// Activations are sigmoid, tanh, relu, hardsigmoid, affine, leakyrelu, thresholdedrelu, scaledtanh, elu,
/// softsign, softplus: one list for both directions, or twice as many with those of the reverse direction
/// last. Alpha and beta belong to the activation of the same index; missing ones are the functions' defaults.
/// A positive clip bounds the gates before their activations.
struct Recurrent {
  std::int64_t hidden_size = 0;
  Strings activations;
  Floats activations_alpha, activations_beta;
  double clip = 0;

 protected:
  template <class V>
  void visit_recurrent(V& v) {
    v("hidden_size", hidden_size);
    v("activations", activations);
    v("activations_alpha", activations_alpha);
    v("activations_beta", activations_beta);
    v("clip", clip);
  }
};

/// Inputs: X [N,I], H [N,h], C [N,h], W [4h,I], R [4h,h], B? [4h], P? [3h]. Outputs: H, C [N,h].
/// P are peepholes in the order i, o, f. input_forget: f = 1 - i.
struct LSTMCell : Recurrent {
  static constexpr OpInfo info{"LSTMCell",         5, 7, 2, Trait::none, "One step of an LSTM", 1,
                               OpFamily::recurrent};
  bool input_forget = false;
  LSTMCell() { activations = {"sigmoid", "tanh", "tanh"}; }
  template <class V>
  void visit(V& v) {
    visit_recurrent(v);
    v("input_forget", input_forget);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.multiply_adds = c.axis(0, 0) * (c.in(3) + c.in(4))}; }
};

/// Inputs: X [N,I], H [N,h], W [3h,I], R [3h,h], B? [3h] (linear_before_reset: [4h]: z, r, h of W, h of R).
/// Output: H [N,h].
struct GRUCell : Recurrent {
  static constexpr OpInfo info{"GRUCell",          4, 5, 1, Trait::adopted, "One step of a GRU", 3,
                               OpFamily::recurrent};
  bool linear_before_reset = false;
  GRUCell() { activations = {"sigmoid", "tanh"}; }
  template <class V>
  void visit(V& v) {
    visit_recurrent(v);
    v("linear_before_reset", linear_before_reset);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.multiply_adds = c.axis(0, 0) * (c.in(2) + c.in(3))}; }
};

/// Inputs: X [N,I], H [N,h], W [h,I], R [h,h], B? [h]. Output: H [N,h].
struct RNNCell : Recurrent {
  static constexpr OpInfo info{
      "RNNCell", 4, 5, 1, Trait::adopted, "One step of a plain recurrent network", 1, OpFamily::recurrent};
  RNNCell() { activations = {"tanh"}; }
  template <class V>
  void visit(V& v) {
    visit_recurrent(v);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.multiply_adds = c.axis(0, 0) * (c.in(2) + c.in(3))}; }
};

/// Inputs: X [N,T,I], H? [N,D,h], C? [N,D,h], lengths? [N], W [D,4h,I], R [D,4h,h], B? [D,4h], P? [D,3h]; D
/// is 2 for bidirectional. Outputs: Y [N,D,T,h] (0 after a sequence's end), H, C [N,D,h]. Absent states and
/// biases are 0, absent lengths T.
struct LSTMSequence : Recurrent {
  static constexpr OpInfo info{"LSTMSequence",     1, 8, 3, Trait::none, "LSTM over sequences", 1,
                               OpFamily::recurrent};
  Direction direction = Direction::forward;
  bool input_forget = false;
  LSTMSequence() { activations = {"sigmoid", "tanh", "tanh"}; }
  template <class V>
  void visit(V& v) {
    visit_recurrent(v);
    v("direction", direction);
    v("input_forget", input_forget);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const {
    return {.multiply_adds = c.axis(0, 0) * c.axis(0, 1) * (c.in(4) + c.in(5))};
  }
};

/// Inputs: X [N,T,I], H? [N,D,h], lengths? [N], W [D,3h,I], R [D,3h,h], B? [D,3h] (linear_before_reset:
/// [D,4h]). Outputs: Y [N,D,T,h], H [N,D,h].
struct GRUSequence : Recurrent {
  static constexpr OpInfo info{"GRUSequence",      1, 6, 2, Trait::none, "GRU over sequences", 5,
                               OpFamily::recurrent};
  Direction direction = Direction::forward;
  bool linear_before_reset = false;
  GRUSequence() { activations = {"sigmoid", "tanh"}; }
  template <class V>
  void visit(V& v) {
    visit_recurrent(v);
    v("direction", direction);
    v("linear_before_reset", linear_before_reset);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const {
    return {.multiply_adds = c.axis(0, 0) * c.axis(0, 1) * (c.in(3) + c.in(4))};
  }
};

/// Inputs: X [N,T,I], H? [N,D,h], lengths? [N], W [D,h,I], R [D,h,h], B? [D,h]. Outputs: Y [N,D,T,h], H
/// [N,D,h].
struct RNNSequence : Recurrent {
  static constexpr OpInfo info{
      "RNNSequence", 1, 6, 2, Trait::none, "Plain recurrent network over sequences", 5, OpFamily::recurrent};
  Direction direction = Direction::forward;
  RNNSequence() { activations = {"tanh"}; }
  template <class V>
  void visit(V& v) {
    visit_recurrent(v);
    v("direction", direction);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const {
    return {.multiply_adds = c.axis(0, 0) * c.axis(0, 1) * (c.in(3) + c.in(4))};
  }
};

}  // namespace lamina
