#include "check/index_trail.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/element_types.h"
#include "base/error.h"
#include "base/half.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/shaping.h"
#include "ops/sorting.h"

namespace lamina::checking {
namespace {

/// How many numbers may be made to find out which index gives which label.
constexpr double kMostNumbers = 1 << 27;

/// By how much engines may differ in a number of this type that they compute from an index, as a share of
/// that number.
double rounding_of(ElementType type) {
  return !is_float(type) ? 0 : type == ElementType::bf16 ? 0x1p-6 : is_half(type) ? 0x1p-9 : 0x1p-20;
}

/// True if the half type holds the number as `value`, be it off by `rounding` before.
bool is_stored(ElementType type, Exact value, Exact number, double rounding) {
  const auto stored = [&](Exact v) -> Exact {
    const auto f = static_cast<float>(v);
    return type == ElementType::bf16 ? to_float(to_bf16(f)) : to_float(to_f16(f));
  };
  return stored(number - rounding) <= value && value <= stored(number + rounding);
}

/// For each value whether it depends on the numbers in the inputs, not only on their shapes.
std::vector<bool> varying(const Graph& graph) {
  std::vector<bool> out(graph.value_slots(), false);
  for (const auto v : graph.inputs()) out[v.index] = true;
  for (const auto id : graph.order()) {
    const Node& n = graph.node(id);
    if (n.op.is<ShapeOf>()) continue;
    const bool is =
        n.op.has(Trait::impure | Trait::control_flow) ||
        std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) { return v.valid() && out[v.index]; });
    for (const auto v : n.outputs) out[v.index] = is;
  }
  return out;
}

bool is_movement(const Node& n, std::size_t input) {
  return input == 0 && (n.op.has(Trait::moves) || n.op.is<Slice>() || n.op.is<StridedSlice>() ||
                        n.op.is<Gather>() || n.op.is<Split>() || n.op.is<VariadicSplit>());
}

/// Each element of the result is made of the element of `input` at the same place.
bool is_pointwise(const Node& n, std::size_t input) {
  if (!n.bodies.empty() || n.op.has(Trait::impure)) return false;
  if (n.op.is<Gather>()) return input == 1;  // a table of labels, if shapes are the same
  return n.op.has(Trait::elementwise) && (input == 0 || !n.op.has(Trait::unary_elementwise));
}

/// The result grows or shrinks by one with the index, if at all.
bool is_shift(const Op& op) { return op.is<Add>() || op.is<Subtract>() || op.is<Convert>(); }

/// How far each number that an operator makes of `t` may be off by the rounding of that operator. Operands of
/// a sum are rounded as well, and may be larger than the result.
std::vector<double> own_roundings(const Op& op, const Tensor& t, const Tensor& made) {
  const double share = rounding_of(made.element_type());
  auto out = to_doubles(made.to_aligned());
  const auto before = to_doubles(t.to_aligned());
  const bool is_sum = op.is<Add>() || op.is<Subtract>();
  for (std::size_t e = 0; e < out.size(); ++e) {
    const double most = is_sum ? std::max(std::fabs(out[e]), std::fabs(before[e])) : std::fabs(out[e]);
    out[e] = std::isfinite(most) ? share * most : 0;
  }
  return out;
}

std::optional<IndexTrail> trail_to(const Graph& graph, const std::vector<bool>& varies, ValueId v) {
  IndexTrail out;
  for (;;) {
    const auto id = graph.producer(v);
    if (!id.valid()) return std::nullopt;
    const Node& n = graph.node(id);
    const auto output =
        static_cast<std::size_t>(std::find(n.outputs.begin(), n.outputs.end(), v) - n.outputs.begin());
    if (n.op.is<TopK>() && output == 1) {
      out.chooser = id;
      break;
    }
    std::optional<std::size_t> from;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      if (!n.inputs[i].valid() || !varies[n.inputs[i].index]) continue;
      if (from) return std::nullopt;
      from = i;
    }
    if (!from || !(is_movement(n, *from) || is_pointwise(n, *from))) return std::nullopt;
    out.steps.push_back({id, *from, output, 0});
    v = n.inputs[*from];
  }
  std::reverse(out.steps.begin(), out.steps.end());
  const Node& chooser = graph.node(out.chooser);
  out.watched = {chooser.inputs[0], chooser.outputs[1]};
  for (auto& s : out.steps) {
    s.operands = out.watched.size();
    const auto& inputs = graph.node(s.node).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (i != s.input && inputs[i].valid()) out.watched.push_back(inputs[i]);
  }
  return out;
}

}  // namespace

std::vector<std::optional<IndexTrail>> index_trails(const Graph& graph) {
  std::vector<std::optional<IndexTrail>> out;
  const auto varies = varying(graph);
  for (const auto& r : graph.results()) out.push_back(trail_to(graph, varies, r.value));
  return out;
}

IndexReader::IndexReader(const Graph& graph, const IndexTrail& trail, std::vector<Tensor> watched)
    : graph_(graph), trail_(trail), watched_(std::move(watched)) {
  const auto axis = normalize_axis(graph.node(trail.chooser).op.as<TopK>()->axis, scores().rank(), "axis");
  size_ = scores().shape()[axis];
  if (size_ == 0 || indices().size() == 0) return;
  find_sources();
  if (sources_.empty()) return;
  find_line();
  possible_ = linear_ || static_cast<double>(size_) * static_cast<double>(sources_.size()) <= kMostNumbers;
}

Tensor IndexReader::follow(const IndexTrail::Step& step, const Tensor& t) const {
  const Node& n = graph_.node(step.node);
  std::vector<Tensor> in;
  for (std::size_t i = 0, next = step.operands; i < n.inputs.size(); ++i)
    in.push_back(i == step.input ? t : n.inputs[i].valid() ? watched_[next++] : Tensor());
  return evaluate_node(n, in, {})[step.output];
}

std::vector<double> IndexReader::numbers_behind(const IndexTrail::Step& step, ElementType type,
                                                const Dims& shape, const std::vector<double>& numbers) const {
  return to_doubles(follow(step, from_doubles(type, shape, numbers)).to_aligned());
}

/// Both directions are tried, and the smaller change is taken: a jump, as of a floor, is on one side only.
std::vector<double> IndexReader::changes_behind(const IndexTrail::Step& step, const Tensor& t,
                                                const Tensor& made,
                                                const std::vector<double>& roundings) const {
  const auto middle = to_doubles(made.to_aligned());
  auto low = to_doubles(t.to_aligned()), high = low;
  for (std::size_t e = 0; e < roundings.size(); ++e) low[e] -= roundings[e], high[e] += roundings[e];
  low = numbers_behind(step, t.element_type(), t.shape(), low);
  high = numbers_behind(step, t.element_type(), t.shape(), high);
  std::vector<double> out(middle.size(), 0);
  for (std::size_t e = 0; e < out.size(); ++e) {
    const double off = std::min(std::fabs(low[e] - middle[e]), std::fabs(high[e] - middle[e]));
    if (std::isfinite(off)) out[e] = off;
  }
  return out;
}

std::vector<double> IndexReader::roundings_behind(const IndexTrail::Step& step, const Tensor& t,
                                                  const Tensor& made,
                                                  const std::vector<double>& roundings) const {
  const Node& n = graph_.node(step.node);
  if (is_movement(n, step.input)) {  // roundings move as the numbers do
    if (roundings.empty()) return {};
    return numbers_behind(step, ElementType::f64, t.shape(), roundings);
  }
  if (!is_float(made.element_type()) || n.op.is<Gather>() || (n.op.is<Convert>() && roundings.empty()))
    return {};
  auto out = own_roundings(n.op, t, made);
  if (roundings.empty()) return out;
  const auto changes = changes_behind(step, t, made, roundings);
  for (std::size_t e = 0; e < out.size(); ++e) out[e] += changes[e];
  return out;
}

std::optional<IndexReader::Made> IndexReader::result_of(std::int64_t index) const {
  const Ints all(indices().size(), index);
  auto t = from_ints(indices().element_type(), indices().shape(), all);
  std::vector<double> roundings;
  try {
    for (const auto& s : trail_.steps) {
      auto made = follow(s, t);
      roundings = roundings_behind(s, t, made, roundings);
      t = std::move(made);
    }
  } catch (const Error& e) {
    if (ends_the_work(e.code())) throw;
    return std::nullopt;
  }
  return Made{exact_numbers(t), std::move(roundings)};
}

/// Numbers of elements move as the indices do. They stay what they are where an index becomes another number,
/// if the shape stays as well: an element that is given to many would have no number of its own.
void IndexReader::find_sources() {
  Ints numbers(indices().size());
  std::iota(numbers.begin(), numbers.end(), 1);
  auto t = indices(), made = from_ints(ElementType::i64, indices().shape(), numbers);
  for (const auto& s : trail_.steps) {
    auto result = follow(s, t);
    if (is_movement(graph_.node(s.node), s.input))
      made = follow(s, made);
    else if (result.shape() != t.shape())
      return;
    t = std::move(result);
  }
  for (const auto n : to_numbers<std::int64_t>(made.to_aligned())) {
    if (n < 1 || n > static_cast<std::int64_t>(numbers.size())) {  // a fill value
      sources_.clear();
      return;
    }
    sources_.push_back(static_cast<std::size_t>(n - 1));
  }
}

void IndexReader::find_line() {
  linear_ = std::all_of(trail_.steps.begin(), trail_.steps.end(), [&](const IndexTrail::Step& s) {
    const Node& n = graph_.node(s.node);
    return is_movement(n, s.input) || is_shift(n.op);
  });
  if (!linear_) return;
  // Narrow types wrap, and floats of few bits do not hold every index: at the end there are gaps then.
  const auto last = size_ - 1;
  const auto begin = result_of(0), second = result_of(1), before = result_of(last - 1), end = result_of(last);
  linear_ = begin && second && before && end;
  if (!linear_) return;
  base_ = begin->numbers, slope_ = second->numbers;
  for (std::size_t e = 0; linear_ && e < base_.size(); ++e) {
    slope_[e] -= base_[e];
    const auto of = [&](std::int64_t index) { return base_[e] + slope_[e] * static_cast<Exact>(index); };
    linear_ = std::fabs(slope_[e]) == 1 && before->numbers[e] == of(last - 1) && end->numbers[e] == of(last);
  }
}

std::vector<std::vector<std::int64_t>> IndexReader::read(const Tensor& result) const {
  return linear_ ? read_by_line(exact_numbers(result)) : read_by_trying(result);
}

IndexReader::Indices IndexReader::read_by_line(const std::vector<Exact>& values) const {
  Indices out(values.size());
  for (std::size_t e = 0; e < values.size(); ++e) {
    const Exact index = (values[e] - base_[e]) * slope_[e];
    if (index == std::trunc(index) && std::fabs(index) < 0x1p53)
      out[e].push_back(static_cast<std::int64_t>(index));
  }
  return out;
}

/// Floats may be rounded in another way elsewhere: the index is taken that gives the nearest number. They may
/// also be stored in fewer bits, where several indices give the same.
IndexReader::Indices IndexReader::read_by_trying(const Tensor& result) const {
  const auto values = exact_numbers(result);
  const auto type = result.element_type();
  const double share = rounding_of(type);
  const auto& last = trail_.steps.back();
  const bool fewer_bits =
      is_half(type) && !is_half(graph_.type(graph_.node(last.node).outputs[last.output]).element);
  Indices out(values.size());
  std::vector<Exact> nearest(values.size(), std::numeric_limits<Exact>::infinity());
  for (std::int64_t j = 0; j < size_; ++j) {
    const auto made = result_of(j);
    for (std::size_t e = 0; made && e < values.size(); ++e) {
      const Exact number = made->numbers[e];
      const double rounding = made->roundings.empty() ? 0 : made->roundings[e];
      const bool same = number == values[e] || (std::isnan(number) && std::isnan(values[e])) ||
                        (fewer_bits && rounding > 0 && is_stored(type, values[e], number, rounding));
      const Exact off = same ? 0 : std::fabs(number - values[e]);
      const Exact allowed = rounding > 0 ? std::max<Exact>(rounding, share * std::fabs(number)) : 0;
      if (!(off <= allowed) || off > nearest[e]) continue;
      if (off < nearest[e]) out[e].clear();
      nearest[e] = off;
      out[e].push_back(j);
    }
  }
  return out;
}

}  // namespace lamina::checking
