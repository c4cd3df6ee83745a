/// Weights of few bits as files keep them: integers, Convert, Subtract and Multiply.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/quantization.h"
#include "ops/shaping.h"
#include "ops/walk.h"
#include "rules/quantised_products.h"
#include "rules/rules.h"
#include "rules/stored_weights.h"
#include "rules/support.h"

namespace lamina {
namespace {

constexpr double kLargestZero = 1 << 20;  // beside which a level is still some steps of f32
constexpr double kNearlyWhole = 1e-4;     // of a level: what rounding leaves of a zero point that was whole

/// A constant as numbers of few bits, and how to get it back: (number - zero point) * scale.
struct Stored {
  Tensor numbers, zero_point, scale;  ///< the second invalid where it is 0
  Dims shape;                         ///< of what they give, where that is not theirs
  ElementType type;
};

ValueId unpacked(Rewrite& r, const Stored& stored, const std::string& name) {
  auto y = r.add(Convert{ElementType::f32}, {r.constant(stored.numbers, name)});
  if (stored.zero_point.valid()) {
    const auto zero = r.constant(stored.zero_point);
    y = r.add(
        Subtract{},
        {y, is_float(stored.zero_point.element_type()) ? zero : r.add(Convert{ElementType::f32}, {zero})});
  }
  y = r.add(Multiply{}, {y, r.constant(stored.scale)});
  if (!stored.shape.empty()) y = r.add(Reshape{}, {y, r.constant(ints_tensor(Ints(stored.shape)))});
  return stored.type == ElementType::f32 ? y : r.add(Convert{stored.type}, {y});
}

void make_unpacked(Rewrite& r, const Stored& stored) {
  const Node& n = r.match().root_node();
  r.replace(unpacked(r, stored, r.graph().value(n.inputs[0]).name));
}

/// Scale and zero point of each range; in double.
Verdict find_steps(const std::vector<double>& from, const std::vector<double>& to, std::int64_t levels,
                   std::vector<double>& scale, std::vector<double>& zero) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    scale.push_back((to[i] - from[i]) / static_cast<double>(levels - 1));
    zero.push_back(-static_cast<double>(levels / 2) - from[i] / scale[i]);
    if (!(std::fabs(scale[i]) >= FLT_MIN && std::fabs(scale[i]) <= FLT_MAX / 256) ||
        !(std::fabs(zero[i]) <= kLargestZero))
      return Verdict::no("{} levels from {} to {} have no scale and zero point", levels, from[i], to[i]);
    if (const auto whole = std::nearbyint(zero[i]); std::fabs(zero[i] - whole) < kNearlyWhole)
      zero[i] = whole;
  }
  return Verdict::yes();
}

Tensor levels_of(const Node& fake_quantize, std::vector<Tensor> inputs, std::int64_t levels) {
  const double lowest = -static_cast<double>(levels / 2);
  inputs[3] = from_doubles(ElementType::f32, {}, {lowest});
  inputs[4] = from_doubles(ElementType::f32, {}, {lowest + static_cast<double>(levels - 1)});
  const Tensor given = evaluate_node(fake_quantize, inputs, {}).at(0);
  Tensor out(ElementType::i8, given.shape());
  const auto* from = given.data<float>().data();
  for (std::size_t i = 0; i < given.size(); ++i)
    out.raw()[i] = static_cast<std::byte>(static_cast<std::int8_t>(std::nearbyint(from[i])));
  return out;
}

Found<Stored> compressed(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  if (!stays_stored(m, n)) return std::nullopt;
  const auto levels = n.op.as<FakeQuantize>()->levels;
  if (levels > 256) return Verdict::no("{} levels are more than 8 bits hold", levels);
  std::vector<Tensor> inputs;
  for (const auto v : n.inputs) {
    const auto* t = g.constant(v);
    if (!t) return Verdict::no("{} is no constant", m.label(v));
    if (t->element_type() != ElementType::f32) return Verdict::no("{} is not f32", m.label(v));
    inputs.push_back(*t);
  }
  const auto ranges = broadcast(Shape::of(inputs[3].shape()), Shape::of(inputs[4].shape()));
  if (!ranges) return Verdict::no("its ranges do not fit each other");
  const auto dims = ranges->sizes();
  const auto spread = [&](const Tensor& t) { return broadcast_values(to_doubles(t), t.shape(), dims); };
  std::vector<double> scale, zero;
  if (auto v = find_steps(spread(inputs[3]), spread(inputs[4]), levels, scale, zero); !v) return v;
  Stored out{
      levels_of(n, inputs, levels), {}, from_doubles(ElementType::f32, dims, scale), {}, ElementType::f32};
  if (std::any_of(zero.begin(), zero.end(), [](double z) { return z != 0; }))
    out.zero_point = from_doubles(ElementType::f32, dims, zero);
  return out;
}

/// Shape of scales and zero points as they meet the numbers, which are cut into blocks where there are any.
Found<Dims> laid_out(const Tensor& parameter, const Dims& numbers, std::size_t axis, std::int64_t block) {
  if (parameter.size() == 1) return Dims{};
  if (block == 0) return along_axis(numbers.size(), axis, parameter.size());
  if (numbers[axis] % block != 0) return Verdict::no("the last of its blocks of {} is smaller", block);
  Dims dims = parameter.shape();
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, 1);
  return dims;
}

/// OpenVINO 2026.4 gathers rows of stored numbers by a kernel of its own, which knows blocks within rows
/// only.
bool is_table(const Graph& g, ValueId v) {
  const auto& uses = g.value(v).uses;
  return std::any_of(uses.begin(), uses.end(),
                     [&](const Use& use) { return g.node(use.node).op.is<Gather>(); });
}

Found<Stored> decomposed(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  const auto& op = *n.op.as<Dequantize>();
  if (!m.for_file) return std::nullopt;
  const auto *scale = g.constant(n.inputs[1]), *zero = has_input(n, 2) ? g.constant(n.inputs[2]) : nullptr;
  if (!scale || (has_input(n, 2) && !zero)) return Verdict::no("its scales are not constant");
  Tensor numbers = *g.constant(n.inputs[0]);
  Dims dims = numbers.shape(), whole;
  const bool is_one = scale->size() == 1 && op.block_size == 0;  // then the axis need not be one
  const auto axis = is_one ? 0 : normalize_axis(op.axis, dims.size(), "axis");
  if (op.block_size > 0 && axis + 1 < dims.size() && is_table(g, n.outputs[0]))
    return Verdict::no("rows are gathered from blocks that lie along another axis");
  const auto shape = laid_out(*scale, dims, axis, op.block_size);
  if (!shape) return shape.verdict();
  if (op.block_size > 0 && scale->size() > 1) {
    whole = dims;
    dims[axis] = op.block_size;
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), whole[axis] / op.block_size);
    numbers = numbers.reshaped(dims);
  }
  Stored out{numbers, {}, convert(*scale, ElementType::f32).reshaped(*shape), whole, scale->element_type()};
  if (zero && uniform_value(g, n.inputs[2]) != 0.0) {
    const auto own = laid_out(*zero, numbers.shape(), axis, 0);
    out.zero_point = zero->reshaped(zero->size() == 1 ? *own : *shape);
  }
  return out;
}

}  // namespace

void add_compress_weights(Rules& rules) {
  rules.push_back(rule("compress-weights", "Stores weights before a FakeQuantize as integers, in files",
                       RuleSet::portable, is<FakeQuantize>().that(unpacks))
                      .when(compressed)
                      .make(make_unpacked));
  rules.push_back(rule("decompose-dequantize",
                       "Turns a Dequantize of weights into Convert, Subtract and Multiply, in files",
                       RuleSet::portable, is<Dequantize>().that(unpacks))
                      .when(decomposed)
                      .make(make_unpacked));
}

}  // namespace lamina
