#include <algorithm>
#include <cmath>

#include "base/element_types.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/quantization.h"
#include "rules/int8_operands.h"
#include "rules/stored_weights.h"
#include "rules/weights.h"

namespace lamina::int8 {
namespace {

/// Numbers of a transposed convolution's weights by group and output, as many for each input of a group, as
/// those of all outputs.
Found<std::vector<double>> by_grouped_output(const Tensor& operand, const Shape& w, std::int64_t groups) {
  if (!w[0].known() || !w[1].known()) return Verdict::no("the size of its weights is not known");
  const auto size_along = [&](std::size_t axis) {
    return axis + operand.rank() < w.rank() ? 1 : operand.shape()[axis + operand.rank() - w.rank()];
  };
  const auto inputs = w[0].size() / groups, rows = size_along(0), columns = size_along(1);
  const auto values = to_doubles(operand);
  const auto number = [&](std::int64_t input, std::int64_t output) {
    return values[static_cast<std::size_t>((rows == 1 ? 0 : input) * columns + (columns == 1 ? 0 : output))];
  };
  std::vector<double> out;
  for (std::int64_t g = 0; g < groups; ++g)
    for (std::int64_t o = 0; o < w[1].size(); ++o) {
      out.push_back(number(g * inputs, o));
      for (std::int64_t i = 1; i < inputs; ++i)
        if (number(g * inputs + i, o) != out.back())
          return Verdict::no("its weights have scales along axis 0, integers are summed there");
    }
  return out;
}

/// The elements of an operand that broadcasts to the weights along their outputs alone.
Found<std::vector<double>> by_output(const Match& m, const Node& product, const Tensor& operand) {
  if (operand.size() == 1) return to_doubles(operand);
  if (operand.size() == 0) return Verdict::no("its weights are empty");
  const auto& w = m.graph().type(product.inputs[1]).shape;
  const auto axis = output_axis(m.graph(), product);
  const auto shift = w.rank() - std::min(w.rank(), operand.rank());
  const auto* back = product.op.as<ConvolutionBackpropData>();
  const bool grouped = back && back->groups > 1;
  for (std::size_t i = 0; i < operand.rank(); ++i)
    if (operand.shape()[i] != 1 && i + shift != axis && !(grouped && i + shift == 0))
      return Verdict::no("its weights have scales along axis {}, integers are summed there", i + shift);
  return grouped ? by_grouped_output(operand, w, back->groups) : to_doubles(operand);
}

/// A constant scale or zero point of a Dequantize, laid out to meet the weights.
Found<Tensor> laid_out(const Match& m, const Node& dequantize, std::size_t input) {
  const auto* t = m.graph().constant(dequantize.inputs[input]);
  const auto& op = *dequantize.op.as<Dequantize>();
  if (!t) return Verdict::no("the scales of its weights are computed");
  if (t->size() == 1) return *t;
  if (op.block_size != 0) return Verdict::no("its weights have scales by block, integers are summed across");
  const auto rank = m.graph().type(dequantize.inputs[0]).shape.rank();
  return t->reshaped(along_axis(rank, normalize_axis(op.axis, rank, "axis"), t->size()));
}

/// One step from the integers to the weights: adds its scale; zero points in `zero`.
Verdict follow(const Match& m, const Node& product, const Node& step, Factors& f, std::vector<double>& zero) {
  const Graph& g = m.graph();
  const auto scaled = [&](const Tensor& t) -> Verdict {
    const auto s = by_output(m, product, t);
    if (s) f.scale = times(f.scale, *s);
    return s.verdict();
  };
  const auto centred = [&](const Tensor& t) -> Verdict {
    const auto z = by_output(m, product, t);
    if (z) zero = *z;
    return z.verdict();
  };
  if (step.op.is<Convert>()) return Verdict::yes();
  if (step.op.is<Dequantize>()) {
    const auto s = laid_out(m, step, 1);
    if (!s) return s.verdict();
    if (auto v = scaled(*s); !v || !has_input(step, 2)) return v;
    const auto z = laid_out(m, step, 2);
    return z ? centred(*z) : z.verdict();
  }
  const auto* operand = step.inputs.size() == 2 ? g.constant(step.inputs[1]) : nullptr;
  if (operand && step.op.is<Multiply>()) return scaled(*operand);
  const bool first = f.scale == std::vector<double>{1} && zero == std::vector<double>{0};
  if (operand && step.op.is<Subtract>() && first) return centred(*operand);
  return Verdict::no("its weights are made of integers by {}", step.op.name());
}

/// The integers without their zero points, where these are whole and what is left has 8 bits.
Found<Tensor> centred(const Tensor& numbers, const std::vector<double>& zero, const WeightsMatrix& matrix) {
  const bool is_zero = std::all_of(zero.begin(), zero.end(), [](double z) { return z == 0; });
  if (is_zero && numbers.element_type() == ElementType::i8) return numbers;
  const auto [least, most] =
      numbers.element_type() == ElementType::u8 ? std::pair{0, 255} : std::pair{-128, 127};
  for (const auto z : zero)
    if (z != std::nearbyint(z) || z < least || z > most)
      return Verdict::no("a zero point of its weights is {}, wanted a whole number from {} to {}", z, least,
                         most);
  const Tensor bytes =
      numbers.element_type() == ElementType::u8 ? numbers : convert(numbers, ElementType::i8);
  Tensor out(ElementType::i8, numbers.shape());
  const bool is_unsigned = bytes.element_type() == ElementType::u8;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto raw = std::to_integer<std::uint8_t>(bytes.raw()[i]);
    const int number = is_unsigned ? raw : static_cast<std::int8_t>(raw);
    const int left = number - static_cast<int>(zero[zero.size() == 1 ? 0 : matrix.output(i)]);
    if (left < -128 || left > 127) return std::nullopt;
    out.raw()[i] = static_cast<std::byte>(left);
  }
  return out;
}

constexpr double kNearlyHalf = 1e-4;  // of a level: what a rounding leaves of a half

/// Twice the integers less their zero points, of which some are halves: so are those of ranges on both sides
/// of 0 with as many levels on each. Nothing where none is.
Found<Tensor> doubled(const Tensor& numbers, const std::vector<double>& zero, const WeightsMatrix& matrix) {
  bool halves = false;
  std::vector<double> twice;
  for (const auto z : zero) {
    twice.push_back(std::nearbyint(2 * z));
    if (!(std::fabs(twice.back() - 2 * z) <= 2 * kNearlyHalf)) return std::nullopt;  // or no number
    halves = halves || std::fmod(twice.back(), 2) != 0;
  }
  if (!halves) return std::nullopt;
  auto values = to_doubles(numbers);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 2 * values[i] - twice[twice.size() == 1 ? 0 : matrix.output(i)];
    if (std::fabs(values[i]) > 255)
      return Verdict::no("a zero point of its weights lies beside their levels");
  }
  return from_doubles(ElementType::i16, numbers.shape(), values);
}

Found<Factors> constant_factors(const Match& m, const Node& product, const StoredWeights& stored) {
  const Graph& g = m.graph();
  Factors out;
  std::vector<double> zero{0};
  for (const auto id : stored.nodes) {
    if (m.is_exempt(id)) return Verdict::no("'{}' is exempt", g.label(id));
    if (auto v = follow(m, product, g.node(id), out, zero); !v) return v;
  }
  out.nodes = stored.nodes;
  const Tensor& numbers = *g.constant(stored.numbers);
  if (!(Shape::of(numbers.shape()) == g.type(product.inputs[1]).shape))
    return Verdict::no("its weights are larger than the integers that they are made of");
  const WeightsMatrix matrix(product, numbers.shape());
  const auto wide = doubled(numbers, zero, matrix);
  if (wide) {
    out.numbers = *wide;
    for (auto& s : out.scale) s /= 2;
    return out;
  }
  if (!wide.verdict().reason().empty()) return wide.verdict();
  auto small = centred(numbers, zero, matrix);
  if (small) {
    out.numbers = *small;
  } else if (!small.verdict().reason().empty()) {
    return small.verdict();
  } else {
    out.numbers = bits_of(numbers.element_type()) == 8 ? numbers : convert(numbers, ElementType::i8);
    const Dims dims = zero.size() == 1 ? Dims{} : Dims{static_cast<std::int64_t>(zero.size())};
    out.zero_points = from_doubles(out.numbers.element_type(), dims, zero);
  }
  return out;
}

/// What makes the weights of integers of 8 bits that are given at run time, from these on; empty when nothing
/// does.
std::vector<NodeId> steps_from_integers(const Graph& g, ValueId weights) {
  constexpr std::size_t kMostSteps = 4;
  std::vector<NodeId> steps;
  for (auto v = weights; steps.size() < kMostSteps;) {
    const auto maker = g.producer(v);
    if (!maker.valid()) return {};
    const Node& n = g.node(maker);
    const bool converts = n.op.is<Dequantize>() || n.op.is<Convert>();
    if (!converts && !n.op.is<Multiply>() && !n.op.is<Subtract>()) return {};
    steps.insert(steps.begin(), maker);
    const auto& from = g.type(n.inputs[0]);
    if (converts) return is_byte(from.element) && from.shape.ranked() ? steps : std::vector<NodeId>{};
    if (!g.constant(n.inputs[1])) return {};
    v = n.inputs[0];
  }
  return {};
}

/// Given at run time: one scale, or one for each output channel.
Found<Factors> computed_factors(const Match& m, const Node& product) {
  const Graph& g = m.graph();
  if (const auto levels = shifted_levels_of(m, product.inputs[1]); levels && levels->offset != 0)
    return Verdict::no("0 is no level of {}, which is computed", m.label(product.inputs[1]));
  const auto steps = steps_from_integers(g, product.inputs[1]);
  if (steps.empty()) return std::nullopt;
  Factors out;
  std::vector<double> zero{0};
  for (const auto id : steps) {
    if (m.is_exempt(id)) return Verdict::no("'{}' is exempt", g.label(id));
    if (auto v = follow(m, product, g.node(id), out, zero); !v) return v;
  }
  out.value = g.node(steps.front()).inputs[0];
  const auto& shape = g.type(out.value).shape;
  if (!shape.same(g.type(product.inputs[1]).shape))
    return shape.known() ? Verdict::no("its weights are larger than the integers that they are made of")
                         : Verdict::no("the sizes of its weights are not known");
  const auto type = g.type(out.value).element;
  const auto [least, most] = type == ElementType::u8 ? std::pair{0, 255} : std::pair{-128, 127};
  for (const auto z : zero)
    if (z != std::nearbyint(z) || z < least || z > most)
      return Verdict::no("a zero point of its weights is {}, wanted a whole number from {} to {}", z, least,
                         most);
  if (std::any_of(zero.begin(), zero.end(), [](double z) { return z != 0; }))
    out.zero_points =
        from_doubles(type, zero.size() == 1 ? Dims{} : Dims{static_cast<std::int64_t>(zero.size())}, zero);
  return out;
}

}  // namespace

std::vector<double> times(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = a[i % a.size()] * b[i % b.size()];
  return out;
}

Found<Factors> factors_of(const Match& m, const Node& product) {
  const auto stored = stored_weights(m.graph(), product.inputs[1]);
  return stored ? constant_factors(m, product, *stored) : computed_factors(m, product);
}

}  // namespace lamina::int8
