#include "tests/property/graph_builder.h"

#include <algorithm>
#include <cmath>

#include "interpreter/interpreter.h"
#include "ops/eval.h"
#include "tests/property/stability.h"
#include "tests/property/wide_values.h"

namespace lamina::testing {
namespace {

constexpr double kLargestValue = 1e4;

}  // namespace

Tensor input_tensor(const Graph& graph, std::size_t index, const Dims& dims, std::uint64_t seed) {
  const auto v = graph.inputs()[index];
  const auto type = graph.type(v).element;
  const auto own_seed = seed * 977 + index;
  if (graph.value(v).name.rfind("wide", 0) == 0) return wide_tensor(type, dims, own_seed);
  const Tensor t = seeded_tensor(type, dims, own_seed);
  if (!is_float(type)) return t;
  constexpr double kScale[] = {1, 3, 0.5, 2};
  auto values = to_doubles(t);
  for (auto& x : values) x *= kScale[index % 4];
  return from_doubles(type, dims, values);
}

void GraphBuilder::keep_sample(ValueId v, Tensor tensor) {
  if (samples_.size() <= v.index) samples_.resize(v.index + 1);
  samples_[v.index] = std::move(tensor);
}

ValueId GraphBuilder::add_input(const char* name, ElementType type, const Dims& dims) {
  const auto index = graph_.inputs().size();
  const auto v = graph_.add_input(name + std::to_string(index), {type, Shape::of(dims)});
  keep_sample(v, input_tensor(graph_, index, dims, 0));
  return v;
}

ValueId GraphBuilder::input(ElementType type, Dims dims) {
  pool_.push_back(add_input("x", type, dims));
  return pool_.back();
}

ValueId GraphBuilder::wide_input(ElementType type, Dims dims) {
  const auto v = add_input("wide", type, dims);
  if (!is_float(type)) pool_.push_back(v);
  return v;
}

ValueId GraphBuilder::constant(Tensor tensor) {
  const auto v = graph_.add_constant(tensor);
  keep_sample(v, std::move(tensor));
  return v;
}

ValueId GraphBuilder::wide_constant(ElementType type, const Dims& dims) {
  return constant(wide_tensor(type, dims, static_cast<std::uint64_t>(below(1000))));
}

ValueId GraphBuilder::floats(const Dims& dims, double low, double high) {
  std::vector<double> values(element_count(dims));
  for (auto& v : values) v = real(low, high);
  return constant(from_doubles(ElementType::f32, dims, values));
}

ValueId GraphBuilder::ints(const Ints& values, bool scalar) {
  const auto type = percent(80) ? ElementType::i64 : ElementType::i32;
  return constant(from_ints(type, scalar ? Dims{} : Dims{static_cast<std::int64_t>(values.size())}, values));
}

ValueId GraphBuilder::weights(const Dims& dims, double scale) {
  std::vector<ValueId> same;
  for (auto v : weights_)
    if (this->dims(v) == dims) same.push_back(v);
  if (!same.empty() && percent(40)) return one_of(same);
  const auto v = floats(dims, -scale, scale);
  weights_.push_back(v);
  return v;
}

bool GraphBuilder::worth_keeping(NodeId node, const std::vector<Tensor>& in, const std::vector<Tensor>& out,
                                 bool bounded) const {
  for (const auto& t : out) {
    if (t.size() > most_elements() || t.rank() > 6) return false;
    if (!is_float(t.element_type()) || !bounded) continue;
    for (const double v : to_doubles(t))
      if (!(std::fabs(v) <= kLargestValue)) return false;
  }
  return near_discontinuity(graph_, node, in, out).empty();
}

bool GraphBuilder::fits(const Node& node, const std::vector<Tensor>& in) const {
  try {
    InferContext types(node, in);
    node.op->infer(types);
    return std::all_of(types.result().begin(), types.result().end(), [&](const TensorType& t) {
      return !t.shape.known() || element_count(t.shape.sizes()) <= most_elements();
    });
  } catch (const Error& e) {
    if (e.code() == ErrorCode::internal) throw;
    return false;  // the attributes do not fit the shapes
  }
}

std::vector<ValueId> GraphBuilder::add_node(Op op, std::vector<ValueId> inputs, int outputs,
                                            std::vector<Graph> bodies, bool bounded) {
  std::vector<Tensor> in;
  for (auto v : inputs) in.push_back(v.valid() ? sample(v) : Tensor());
  Node node;
  node.op = op;
  node.inputs = inputs;
  node.outputs.resize(static_cast<std::size_t>(outputs >= 0 ? outputs : op.info().outputs));
  node.bodies = bodies;
  if (!fits(node, in)) return {};
  const auto id = graph_.add_node(std::move(op), std::move(inputs), {}, outputs, std::move(bodies));
  std::vector<Tensor> out;
  try {
    out = interpret_node(graph_.node(id), in);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::unsupported) throw;
    graph_.erase(id);  // numbers of four bits are not moved
    return {};
  }
  const auto made = graph_.node(id).outputs;
  if (!worth_keeping(id, in, out, bounded)) {
    graph_.erase(id);
    return {};
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    keep_sample(made[i], out[i]);
    if (out[i].size() > 0 && bounded) pool_.push_back(made[i]);
  }
  ++nodes_;
  return made;
}

std::vector<ValueId> GraphBuilder::add_many(Op op, std::vector<ValueId> inputs, int outputs,
                                            std::vector<Graph> bodies) {
  return add_node(std::move(op), std::move(inputs), outputs, std::move(bodies), true);
}

std::optional<ValueId> GraphBuilder::add_unbounded(Op op, std::vector<ValueId> inputs) {
  const auto made = add_node(std::move(op), std::move(inputs), -1, {}, false);
  if (made.empty()) return std::nullopt;
  return made[0];
}

std::optional<ValueId> GraphBuilder::add(Op op, std::vector<ValueId> inputs, int outputs,
                                         std::vector<Graph> bodies) {
  const auto made = add_many(std::move(op), std::move(inputs), outputs, std::move(bodies));
  if (made.empty()) return std::nullopt;
  return made[0];
}

double GraphBuilder::lowest(ValueId v) const {
  const auto values = to_doubles(sample(v));
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

double GraphBuilder::largest(ValueId v) const {
  const auto values = to_doubles(sample(v));
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

std::optional<ValueId> GraphBuilder::pick(const Test& fits) {
  if (focus_.valid() && fits(focus_) && percent(90)) return focus_;
  std::vector<ValueId> found;
  for (auto v : pool_)
    if (fits(v)) found.push_back(v);
  if (found.empty()) return std::nullopt;
  return percent(60) ? found.back() : one_of(found);
}

std::optional<ValueId> GraphBuilder::pick_f32(std::size_t low_rank, std::size_t high_rank) {
  return pick([&](ValueId v) { return is_f32(v) && rank(v) >= low_rank && rank(v) <= high_rank; });
}

ValueId GraphBuilder::partner(const Dims& dims) {
  if (percent(70))
    if (const auto old = pick([&](ValueId v) { return is_f32(v) && this->dims(v) == dims; })) return *old;
  return percent(50) ? input(ElementType::f32, dims) : floats(dims);
}

Dims GraphBuilder::broadcastable(const Dims& dims) {
  const auto rank = static_cast<std::int64_t>(dims.size());
  if (rank >= 2 && percent(35)) {  // one value per channel, with any number of ones in front
    Dims out(static_cast<std::size_t>(between(rank - 1, rank)), 1);
    out[out.size() - static_cast<std::size_t>(rank - 1)] = dims[1];
    return out;
  }
  Dims out = dims;
  const int ones = one_of({0, 20, 50, 80, 100});
  for (auto& d : out)
    if (percent(ones)) d = 1;
  out.erase(out.begin(), out.begin() + (percent(50) ? below(rank + 1) : 0));
  if (out.size() == dims.size() && percent(5)) out.insert(out.begin(), 1);
  return out;
}

Graph GraphBuilder::finish() {
  std::vector<ValueId> read, unread;
  for (auto v : pool_) {
    if (graph_.value(v).kind == ValueKind::input) continue;
    (graph_.readers(v) ? read : unread).push_back(v);
  }
  int results = 0;
  const auto result = [&](ValueId v) { graph_.add_result("r" + std::to_string(results++), v); };
  for (auto v : unread)
    if (!percent(5)) result(v);
  for (auto v : read)
    if (percent(6)) result(v);
  if (results == 0) result(pool_.back());
  if (percent(4)) result(graph_.inputs()[0]);
  if (percent(4)) result(floats({2, 3}));
  if (percent(4)) result(graph_.results()[0].value);  // the same value twice
  graph_.erase_unused_constants();
  return std::move(graph_);
}

}  // namespace lamina::testing
