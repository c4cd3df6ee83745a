#include "rules/stored_weights.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/pooling.h"
#include "ops/quantization.h"
#include "ops/reduction.h"
#include "ops/shaping.h"
#include "ops/walk.h"
#include "rules/chosen_elements.h"
#include "rules/rules.h"
#include "rules/shrink_constants.h"
#include "rules/spelled_dequantize.h"
#include "rules/weights.h"

namespace lamina {
namespace {

constexpr std::size_t kMostNodes = 8;  // that unpack, centre and scale
constexpr std::size_t kSmallZeroPoint =
    4096;  // elements: as floats they are small beside what they belong to

/// All who read it subtract it from numbers of few bits.
bool is_zero_point(const Graph& g, ValueId v) {
  const auto& uses = g.value(v).uses;
  return !g.is_result(v) && !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    const Node& n = g.node(use.node);
    if (!n.op.is<Subtract>() || use.input != 1) return false;
    const auto minuend = g.producer(n.inputs[0]);
    return minuend.valid() && g.node(minuend).op.is<Convert>();
  });
}

/// A step of arithmetic with constants that may stand behind what unpacks.
bool scales_or_centres(const Graph& g, const Node& n) {
  if (!n.op.is<Multiply>() && !n.op.is<Subtract>()) return false;
  return g.constant(n.inputs[1]) && !g.constant(n.inputs[0]);
}

/// The product whose weights the value becomes; invalid: none.
NodeId product_of(const Graph& g, ValueId v) {
  for (std::size_t steps = 0; steps < kMostNodes; ++steps) {
    const auto& uses = g.value(v).uses;
    if (uses.empty()) return {};
    const Node& n = g.node(uses[0].node);
    if (has_weights(n)) return uses[0].input < 2 ? uses[0].node : NodeId{};
    if (uses[0].input != 0 || n.outputs.size() != 1) return {};
    // Their constants may still have to be folded.
    if (!n.op.is<Multiply>() && !n.op.is<Subtract>() && !moves_elements(n) && !n.op.is<Convert>()) return {};
    v = n.outputs[0];
  }
  return {};
}

}  // namespace

bool is_few_bits(ElementType type) { return type != ElementType::boolean && bits_of(type) <= 8; }

bool unpacks(const Graph& g, const Node& n) {
  if (n.inputs.empty() || !n.inputs[0].valid()) return false;
  const auto* t = g.constant(n.inputs[0]);
  if (!t || t->size() == 0 || !is_float(g.type(n.outputs[0]).element)) return false;
  if (t->size() == 1 && !product_of(g, n.outputs[0]).valid()) return false;
  // Two levels are those of a binary network.
  if (const auto* fq = n.op.as<FakeQuantize>()) return fq->levels > 2;
  if (!is_few_bits(t->element_type())) return false;
  if (n.op.is<Dequantize>()) return true;
  return n.op.is<Convert>() && !(t->size() <= kSmallZeroPoint && is_zero_point(g, n.outputs[0]));
}

namespace {

/// What conversions of halves become once these are floats; it will be removed.
bool converts_nothing(const Graph& g, const Node& n) {
  return n.op.is<Convert>() && g.type(n.inputs[0]).element == g.type(n.outputs[0]).element;
}

bool is_mean(const Node& n) {
  return n.op.is<AvgPool>() || n.op.is<AdaptiveAvgPool>() || n.op.is<ReduceMean>();
}

}  // namespace

bool hands_on(const Graph& g, const Node& n) {
  return converts_nothing(g, n) || chooses_elements(n) || n.op.has(Trait::keeps_values) ||
         n.op.is<MaxPool>() || n.op.is<Relu>() || n.op.is<Clamp>() || n.op.is<Pad>();
}

namespace {

/// A Dequantize or FakeQuantize gives it, perhaps moved or pooled since.
bool is_quantised(const Graph& g, ValueId value) {
  constexpr std::size_t kMostMoves = 16;
  auto v = value;
  for (std::size_t steps = 0; steps < kMostMoves && v.valid(); ++steps) {
    const auto maker = g.producer(v);
    if (!maker.valid()) return false;
    const Node& n = g.node(maker);
    if (const auto* fq = n.op.as<FakeQuantize>()) return fq->levels > 2 && fq->levels <= 256;
    if (is_dequantised(g, v)) return true;
    const bool offset = n.op.is<Add>() && g.constant(n.inputs[1]);  // of levels that have no 0
    if (!hands_on(g, n) && !offset) return false;
    v = n.inputs[0];
  }
  return false;
}

/// Some product reads the value, perhaps moved or pooled before, whose other operand is such.
bool feeds_product(const Graph& g, ValueId from, const std::function<bool(ValueId)>& is_such) {
  constexpr std::size_t kMostValues = 64;
  std::vector<ValueId> seen{from};
  for (std::size_t at = 0; at < seen.size(); ++at)
    for (const auto& use : g.value(seen[at]).uses) {
      const Node& n = g.node(use.node);
      if (has_weights(n) && use.input < 2 && is_such(n.inputs[1 - use.input])) return true;
      // Levels may be the same behind a FakeQuantize; means read integers as well.
      if (!hands_on(g, n) && !n.op.is<FakeQuantize>() && !is_mean(n)) continue;
      for (const auto v : n.outputs)
        if (seen.size() < kMostValues && std::find(seen.begin(), seen.end(), v) == seen.end())
          seen.push_back(v);
    }
  return false;
}

}  // namespace

bool has_quantised_source(const Graph& g, const Node& product) { return is_quantised(g, product.inputs[0]); }

bool feeds_quantised_product(const Graph& g, ValueId value) {
  return feeds_product(g, value, [&](ValueId v) { return stored_weights(g, v) || is_quantised(g, v); });
}

bool feeds_product_of_quantised(const Graph& g, ValueId value) {
  return feeds_product(g, value, [&](ValueId v) { return !stored_weights(g, v) && is_quantised(g, v); });
}

bool stays_stored(const Match& m, const Node& unpack) {
  if (!m.stored || !unpacks(m.graph(), unpack)) return false;
  if (m.for_file) return m.graph().constant(unpack.inputs[0])->size() > 1;
  const auto product = product_of(m.graph(), unpack.outputs[0]);
  return product.valid() && has_quantised_source(m.graph(), m.graph().node(product));
}

std::optional<StoredWeights> stored_weights(const Graph& g, ValueId value) {
  StoredWeights out;
  for (auto v = value; out.nodes.size() < kMostNodes;) {
    const auto maker = g.producer(v);
    if (!maker.valid() || (v != value && (g.readers(v) != 1))) return std::nullopt;
    out.nodes.push_back(maker);
    const Node& n = g.node(maker);
    v = n.inputs[0];
    if (unpacks(g, n)) {
      out.numbers = v;
      std::reverse(out.nodes.begin(), out.nodes.end());
      return out;
    }
    if (!scales_or_centres(g, n)) return std::nullopt;
  }
  return std::nullopt;
}

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

/// What stands on a constant of few bits, from the constant on, once it is moved itself.
struct Moved {
  StoredWeights from;
  Tensor numbers;
  std::vector<std::vector<Tensor>> operands;  ///< of each node, but for the first
};

/// What the root makes of a constant in place of what it reads.
Found<Tensor> moved_constant(const Match& m, Tensor tensor) {
  const Node& n = m.root_node();
  std::vector<Tensor> inputs{std::move(tensor)};
  for (std::size_t i = 1; i < n.inputs.size(); ++i) inputs.push_back(*m.graph().constant(n.inputs[i]));
  try {
    return evaluate_node(n, inputs, {}).at(0);
  } catch (const Error& e) {
    return Verdict::no("{}", e.what());
  }
}

/// Operands along axes that are joined with others would have to be repeated.
Found<Tensor> moved_operand(const Match& m, const Tensor& operand, const Dims& dims) {
  if (operand.size() == 1) return operand.reshaped({});
  const auto all = broadcast(Shape::of(operand.shape()), Shape::of(dims));
  if (!all || !(*all == Shape::of(dims))) return Verdict::no("a scale is larger than what it scales");
  auto spread = moved_constant(m, from_doubles(operand.element_type(), dims,
                                               broadcast_values(to_doubles(operand), operand.shape(), dims)));
  if (!spread) return spread.verdict();
  auto out = without_repeats(*spread);
  if (out.size() > operand.size())
    return Verdict::no("scales of shape {} lie along an axis that it joins with another",
                       to_string(operand.shape()));
  return out;
}

Found<Moved> moved(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  if (!m.stored || g.readers(n.inputs[0]) != 1) return std::nullopt;
  auto from = stored_weights(g, n.inputs[0]);
  if (!from || g.node(from->nodes[0]).op.is<Dequantize>()) return std::nullopt;
  for (std::size_t i = 1; i < n.inputs.size(); ++i)
    if (!n.inputs[i].valid() || !g.constant(n.inputs[i])) return std::nullopt;
  const auto numbers = moved_constant(m, *g.constant(from->numbers));
  if (!numbers) return numbers.verdict();
  Moved out{*from, *numbers, {}};
  for (const auto id : from->nodes) {
    if (m.is_exempt(id)) return Verdict::no("'{}' is exempt", g.label(id));
    auto& operands = out.operands.emplace_back();
    for (std::size_t i = 1; i < g.node(id).inputs.size(); ++i) {
      const auto* t = g.constant(g.node(id).inputs[i]);
      if (!t) return std::nullopt;
      auto now = moved_operand(m, *t, g.constant(from->numbers)->shape());
      if (!now) return now.verdict();
      operands.push_back(*now);
    }
  }
  return out;
}

void make_moved(Rewrite& r, const Moved& found) {
  const Graph& g = r.graph();
  auto y = r.constant(found.numbers, g.value(found.from.numbers).name);
  for (std::size_t k = 0; k < found.from.nodes.size(); ++k) {
    const auto id = found.from.nodes[k];
    std::vector<ValueId> inputs{y};
    for (std::size_t i = 0; i < found.operands[k].size(); ++i)
      inputs.push_back(r.constant(found.operands[k][i], g.value(g.node(id).inputs[i + 1]).name));
    r.absorb(id);
    r.named_after(id);
    y = r.add(Op(g.node(id).op), std::move(inputs));
  }
  r.replace(y);
}

bool moves_stored(const Graph& g, const Node& n) {
  return n.inputs[0].valid() && stored_weights(g, n.inputs[0]).has_value();
}

}  // namespace

void add_stored_weights(Rules& rules) {
  rules.push_back(rule("compress-weights", "Stores weights behind a FakeQuantize as integers, in files",
                       RuleSet::portable, is<FakeQuantize>().that(unpacks))
                      .when(compressed)
                      .make(make_unpacked));
  rules.push_back(rule("decompose-dequantize",
                       "Makes a Dequantize of weights Convert, Subtract and Multiply, in files",
                       RuleSet::portable, is<Dequantize>().that(unpacks))
                      .when(decomposed)
                      .make(make_unpacked));
  rules.push_back(
      rule("move-stored-weights",
           "Transposes and reshapes weights of few bits themselves, not what is made of them, in files",
           RuleSet::portable, is<Transpose, Reshape, Unsqueeze, Squeeze>().that(moves_stored))
          .when(moved)
          .make(make_moved));
}

}  // namespace lamina
