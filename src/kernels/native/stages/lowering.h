#pragma once
/// How a body is lowered to loops. Not for others than lower.cc (values) and lower_operators.cc.
#include <map>
#include <optional>

#include "base/element_types.h"
#include "kernels/native/stages/code.h"
#include "kernels/native/stages/functions.h"
#include "ops/eval.h"
#include "ops/quantization.h"

namespace lamina::stages {

inline constexpr int kNone = -1;

/// What values of a type are kept as between loops: halves as f32, rounded after each stage.
inline ElementType carrier(ElementType type) { return is_half(type) ? ElementType::f32 : type; }
inline std::size_t bytes_of(ElementType type) { return static_cast<std::size_t>(bits_of(type)) / 8; }

class Lowering {
 public:
  Lowering(const Graph& body, const std::vector<Parameter>& parameters, const Target& target, Lowered& out,
           std::string& why)
      : body_(body), parameters_(parameters), target_(target), out_(out), why_(why) {}
  bool run();

 private:
  /// A value of the body: a view (its number) or an operation (counted from kFirstOperation).
  static constexpr int kFirstOperation = 1 << 20;
  struct Made {
    int value = kNone;
    ElementType type = ElementType::undefined;  ///< f16, bf16: still to be rounded
  };

  int refuse(std::string why) {
    why_ = std::move(why);
    return kNone;
  }

  int operation(Loop loop, std::vector<int> in, std::size_t bytes, double cycles,
                const void* function = nullptr) {
    out_.operations.push_back({loop, function, std::move(in), bytes, cycles});
    return kFirstOperation + static_cast<int>(out_.operations.size()) - 1;
  }
  int unary(Unary u, int x, double cycles = 0.1) {
    return operation(float_loops().unary[static_cast<int>(u)], {x}, 4, cycles);
  }
  int binary(Binary b, int x, int y, double cycles = 0.1) {
    return operation(float_loops().binary[static_cast<int>(b)], {x, y}, 4, cycles);
  }
  int converted(int x, ElementType from, ElementType to) {
    const auto loop = convert_loop(from, to);
    return loop ? operation(loop, {x}, bytes_of(to), 0.2) : x;
  }
  int rounded(int x, ElementType type) {
    if (!is_half(type)) return x;
    return unary(type == ElementType::f16 ? Unary::round_f16 : Unary::round_bf16, x, 0.3);
  }

  /// One number as an operand.
  int number(double v, ElementType type = ElementType::f32) { return constant(from_doubles(type, {}, {v})); }
  int constant(Tensor scalar) {
    View view;
    view.carried = scalar.element_type();
    view.bytes = bytes_of(view.carried);
    view.constant = std::move(scalar);
    view.axis_strides.assign(target_.dims.size(), 0);
    return add(std::move(view));
  }
  int add(View view) {
    out_.views.push_back(std::move(view));
    return static_cast<int>(out_.views.size()) - 1;
  }

  /// The value in its carrier type. `placed`: the shape under which it broadcasts, when not its own.
  int read(ValueId v, const Dims* placed = nullptr);
  int load(ValueId v, ElementType element, const Dims& dims);
  const Parameter& parameter(ValueId v) const;
  const Tensor* constant_of(ValueId v) const;
  std::optional<double> constant_number(ValueId v) const;

  std::vector<NodeId> needed(ValueId result) const;
  int lower(const Node& n);
  int lower_convert(const Node& n);
  int lower_select(const Node& n);
  int lower_fake_quantize(const Node& n, const FakeQuantize& q);
  /// Scale and zero point lie along the axis.
  std::optional<Dims> along(const Node& n, std::size_t input, std::int64_t axis_given);
  int read_parameter(const Node& n, std::size_t input, std::int64_t axis);
  int read_scale(const Node& n, std::int64_t axis);  ///< as f32
  /// 0 where there is none.
  int read_zero_point(const Node& n, std::int64_t axis, ElementType as);
  int lower_quantize(const Node& n, const Quantize& q);
  int lower_dequantize(const Node& n, const Dequantize& q);
  /// The inputs of a node, PRelu's slope placed along its axis.
  std::optional<std::vector<int>> operands(const Node& n);
  int lower_f32(const Node& n);
  int lower_custom(const Node& n, const CustomOp& op);
  /// Powers that are cheaper than logarithms and exact in sign.
  int power(int x, double e);
  int map(const void* function, ElementType type, std::vector<int> in);
  int map_any(const Functions& f, ElementType type, std::vector<int> in);
  int lower_f64(const Node& n);
  int integer(Integer i, ElementType type, std::vector<int> in);
  int lower_integer(const Node& n, ElementType type);
  /// The result comes from a last operation that nothing else reads, in its own type.
  bool finish(ValueId result);
  void renumber();

  const Graph& body_;
  const std::vector<Parameter>& parameters_;
  const Target& target_;
  Lowered& out_;
  std::string& why_;
  std::map<ValueId, Made> made_;
  std::map<std::pair<ValueId, Dims>, int> viewed_;
};

}  // namespace lamina::stages
