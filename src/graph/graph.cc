#include "graph/graph.h"
#include "base/cancellation.h"

#include <algorithm>
#include <queue>

#include "base/work_bounds.h"
#include "graph/infer.h"
#include "graph/limits.h"

namespace lamina {

std::size_t base_inputs(const Node& node) {
  const auto& info = node.op.info();
  if (!has(info.traits, Trait::epilogue) || node.bodies.empty()) return node.inputs.size();
  return std::min(node.inputs.size(), static_cast<std::size_t>(info.max_inputs));
}

const Graph* epilogue(const Node& node) {
  return node.op.has(Trait::epilogue) && !node.bodies.empty() ? &node.bodies[0] : nullptr;
}

std::string Graph::unique_name(const std::string& wanted) {
  std::string base = wanted.empty() ? "v" + std::to_string(values_.size()) : wanted;
  const auto numbered = [&](std::size_t k) { return base + "_" + std::to_string(k); };
  if (!by_name_.contains(base)) return base;
  // Numbers are given in order, so galloping finds a free one without trying all of them.
  std::size_t taken = 0, free = 1;
  for (; by_name_.contains(numbered(free)); free *= 2) taken = free;
  while (free - taken > 1) {
    const auto middle = taken + (free - taken) / 2;
    (by_name_.contains(numbered(middle)) ? taken : free) = middle;
  }
  return numbered(free);
}

ValueId Graph::new_value(const std::string& name, ValueKind kind, TensorType type) {
  const ValueId id{static_cast<std::uint32_t>(values_.size())};
  Value v;
  v.name = unique_name(name);
  v.kind = kind;
  v.type = std::move(type);
  by_name_[v.name] = id;
  values_.push_back(std::move(v));
  return id;
}

ValueId Graph::add_input(const std::string& name, TensorType type) {
  if (const auto wrong = beyond_limits(type.shape); !wrong.empty())
    fail(ErrorCode::bad_file, "input \"{}\" {}", name, wrong);
  require_elements([&] { return fmt::format("input \"{}\"", name); }, type.shape);
  const auto id = new_value(name, ValueKind::input, std::move(type));
  inputs_.push_back(id);
  return id;
}

ValueId Graph::add_constant(Tensor data, const std::string& name) {
  LAMINA_CHECK(data.valid(), "constant without data");
  const auto id = new_value(name, ValueKind::constant, {data.element_type(), Shape::of(data.shape())});
  require_elements([&] { return fmt::format("constant \"{}\"", name); }, type(id).shape);
  values_[id.index].constant = std::move(data);
  return id;
}

NodeId Graph::add_node(Op op, std::vector<ValueId> inputs, const std::string& name, int outputs,
                       std::vector<Graph> bodies, const std::vector<std::string>& output_names) {
  const auto& info = op.info();
  LAMINA_CHECK(outputs >= 0 || info.outputs != kMany, "{} needs its number of outputs", info.name);
  for (auto v : inputs)
    LAMINA_CHECK(!v.valid() || v.index < values_.size(), "dangling input of {}", info.name);
  const NodeId id{static_cast<std::uint32_t>(nodes_.size())};
  Node node;
  node.op = std::move(op);
  node.name = name;
  node.bodies = std::move(bodies);
  node.inputs = std::move(inputs);
  const int count = outputs >= 0 ? outputs : info.outputs;
  count_node_made(static_cast<std::size_t>(count));
  const std::string base = name.empty() ? std::string() : name;
  for (int i = 0; i < count; ++i) {
    std::string wanted = static_cast<std::size_t>(i) < output_names.size()
                             ? output_names[static_cast<std::size_t>(i)]
                         : base.empty() ? ""
                         : i == 0       ? base
                                        : base + "." + std::to_string(i);
    const auto v = new_value(wanted, ValueKind::output_of_node, {});
    values_[v.index].producer = id;
    values_[v.index].output = static_cast<std::uint32_t>(i);
    node.outputs.push_back(v);
  }
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) add_use(node.inputs[i], {id, i});
  nodes_.push_back(std::move(node));
  infer_node(id);
  return id;
}

ValueId Graph::add(Op op, std::vector<ValueId> inputs, const std::string& name) {
  return nodes_[add_node(std::move(op), std::move(inputs), name).index].outputs.at(0);
}

void Graph::add_result(const std::string& result_name, ValueId value) {
  require_outputs(results_.size() + 1);
  LAMINA_CHECK(value.index < values_.size(), "result \"{}\" is no value", result_name);
  values_[value.index].results.push_back(static_cast<std::uint32_t>(results_.size()));
  results_.push_back({result_name, value});
}

void Graph::set_result(std::size_t index, ValueId value) {
  auto& result = results_.at(index);
  if (result.value.index < values_.size()) std::erase(values_[result.value.index].results, index);
  result.value = value;
  if (value.index < values_.size())  // verify() tells of a result that is no value
    values_[value.index].results.push_back(static_cast<std::uint32_t>(index));
}

void Graph::index_results() {
  values_.for_each([](Value& v) { v.results.clear(); });
  for (std::uint32_t r = 0; r < results_.size(); ++r)
    if (const auto at = results_[r].value.index; at < values_.size()) values_[at].results.push_back(r);
}

SourceId Graph::add_source(const std::string& source_name, const std::string& type) {
  sources.push_back({source_name, type});
  return {static_cast<std::uint32_t>(sources.size() - 1)};
}

std::size_t Graph::node_count() const {
  std::size_t count = 0;
  nodes_.for_each([&](const Node& n) { count += !n.erased(); });
  return count;
}

const Tensor* Graph::constant(ValueId id) const {
  if (!id.valid() || value(id).kind != ValueKind::constant) return nullptr;
  return &value(id).constant;
}

NodeId Graph::producer(ValueId id) const {
  return id.valid() && value(id).kind == ValueKind::output_of_node ? value(id).producer : NodeId{};
}

ValueId Graph::find_value(std::string_view wanted) const {
  const auto it = by_name_.find(wanted);
  return it == by_name_.end() ? ValueId{} : it->second;
}

std::vector<NodeId> Graph::order() const {
  std::vector<std::uint32_t> waiting(nodes_.size(), 0);
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  std::size_t alive = 0;
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].erased()) continue;
    ++alive;
    for (auto v : nodes_[n].inputs)
      if (v.valid() && value(v).kind == ValueKind::output_of_node) ++waiting[n];
    if (waiting[n] == 0) ready.push(n);
  }
  std::vector<NodeId> out;
  out.reserve(alive);
  while (!ready.empty()) {
    const auto n = ready.top();
    ready.pop();
    out.push_back({n});
    for (auto v : nodes_[n].outputs)
      for (const auto& use : value(v).uses)
        if (--waiting[use.node.index] == 0) ready.push(use.node.index);
  }
  if (out.size() != alive) {
    std::string one;
    for (std::uint32_t n = 0; n < nodes_.size() && one.empty(); ++n)
      if (!nodes_[n].erased() && waiting[n] != 0) one = label({n});
    fail(ErrorCode::bad_file, "the graph has a cycle through \"{}\"", one);
  }
  return out;
}

std::string Graph::label(NodeId id) const {
  const auto& n = node(id);
  if (!n.name.empty()) return n.name;
  return n.op.name() + (n.outputs.empty() ? "" : " -> " + value(n.outputs[0]).name);
}

void Graph::add_use(ValueId v, Use use) {
  if (v.valid()) values_[v.index].uses.push_back(use);
}

void Graph::drop_use(ValueId v, Use use) {
  if (!v.valid()) return;
  auto& uses = values_[v.index].uses;
  // Removes uses from both ends: a value with many readers loses them one after the other.
  for (std::size_t i = 0; 2 * i < uses.size(); ++i)
    for (const auto at : {i, uses.size() - 1 - i})
      if (uses[at] == use) {
        uses.erase(uses.begin() + static_cast<std::ptrdiff_t>(at));
        return;
      }
  LAMINA_CHECK(false, "use list of '{}' is out of step", value(v).name);
}

void Graph::set_input(NodeId id, std::size_t input, ValueId v) {
  auto& slot = nodes_[id.index].inputs.at(input);
  const Use use{id, static_cast<std::uint32_t>(input)};
  drop_use(slot, use);
  slot = v;
  add_use(v, use);
}

void Graph::set_inputs(NodeId id, std::vector<ValueId> inputs) {
  auto& n = nodes_[id.index];
  for (std::uint32_t i = 0; i < n.inputs.size(); ++i) drop_use(n.inputs[i], {id, i});
  n.inputs = std::move(inputs);
  for (std::uint32_t i = 0; i < n.inputs.size(); ++i) add_use(n.inputs[i], {id, i});
}

void Graph::set_op(NodeId id, Op op) { nodes_[id.index].op = std::move(op); }
void Graph::set_type(ValueId v, TensorType type) { values_[v.index].type = std::move(type); }

void Graph::set_value_name(ValueId v, const std::string& wanted) {
  auto& value = values_[v.index];
  if (wanted.empty() || value.name == wanted) return;  // a name that was made up is better than none
  by_name_.erase(value.name);
  value.name = find_value(wanted).valid() ? unique_name(wanted) : wanted;
  by_name_[value.name] = v;
}

void Graph::set_sources(NodeId id, std::vector<SourceId> list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  nodes_[id.index].sources = std::move(list);
}

void Graph::replace(ValueId from, ValueId to) {
  if (from == to) return;
  auto uses = std::move(values_[from.index].uses);
  values_[from.index].uses.clear();
  for (const auto& use : uses) {
    nodes_[use.node.index].inputs[use.input] = to;
    add_use(to, use);
  }
  const auto results = std::move(values_[from.index].results);
  values_[from.index].results.clear();
  for (const auto r : results) {
    results_[r].value = to;
    values_[to.index].results.push_back(r);
  }
}

void Graph::erase(NodeId id) {
  auto& n = nodes_[id.index];
  for (auto v : n.outputs) {
    LAMINA_CHECK(readers(v) == 0, "erasing '{}' whose output is read", label(id));
    by_name_[value(v).name] = ValueId{};  // taken for ever: only set_value_name() gives it to another
    values_[v.index] = Value{};
  }
  for (std::uint32_t i = 0; i < n.inputs.size(); ++i) drop_use(n.inputs[i], {id, i});
  n = Node{};
  count_node_erased();
}

std::vector<NodeId> Graph::erase_unused() {
  std::vector<NodeId> erased, work;
  for (std::uint32_t n = 0; n < nodes_.size(); ++n)
    if (!nodes_[n].erased()) work.push_back({n});
  const auto unread = [&](const Node& n) {
    return std::all_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) { return readers(v) == 0; });
  };
  while (!work.empty()) {  // from the end, so that whole chains go in one pass
    const auto id = work.back();
    work.pop_back();
    auto& n = nodes_[id.index];
    if (n.erased() || n.op.has(Trait::impure) || !unread(n)) continue;
    std::vector<NodeId> before;
    for (auto v : n.inputs)
      if (const auto p = producer(v); p.valid()) before.push_back(p);
    for (auto v : n.outputs) {
      by_name_[value(v).name] = ValueId{};
      values_[v.index] = Value{};
    }
    for (std::uint32_t i = 0; i < n.inputs.size(); ++i) drop_use(n.inputs[i], {id, i});
    n = Node{};
    count_node_erased();
    erased.push_back(id);
    work.insert(work.end(), before.begin(), before.end());
  }
  erase_unused_constants();
  return erased;
}

void Graph::erase_unused_constants() {
  for (std::uint32_t v = 0; v < values_.size(); ++v)
    if (values_[v].kind == ValueKind::constant && values_[v].uses.empty() && !is_result({v})) {
      by_name_[values_[v].name] = ValueId{};
      values_[v] = Value{};
    }
}

void Graph::infer_types() {
  for (auto id : order()) infer_node(id);
}

namespace {

/// Type of the epilogue's result for the given base result.
TensorType infer_epilogue(const Graph& graph, const Node& node, Graph& body, const TensorType& base) {
  const auto first_extra = base_inputs(node);
  LAMINA_CHECK(body.inputs().size() == 1 + node.inputs.size() - first_extra && body.results().size() == 1,
               "epilogue of '{}' has {} parameters and {} results", node.name, body.inputs().size(),
               body.results().size());
  body.set_type(body.inputs()[0], base);
  for (std::size_t i = 1; i < body.inputs().size(); ++i)
    body.set_type(body.inputs()[i], graph.type(node.inputs[first_extra + i - 1]));
  body.infer_types();
  return body.type(body.results()[0].value);
}

/// Types in the bodies behind an epilogue, whose parameters are the node's first inputs.
void infer_further_bodies(const Graph& graph, Node& node) {
  for (std::size_t b = 1; b < node.bodies.size(); ++b) {
    auto& body = node.bodies[b];
    for (std::size_t i = 0; i < std::min(body.inputs().size(), node.inputs.size()); ++i)
      if (node.inputs[i].valid()) body.set_type(body.inputs()[i], graph.type(node.inputs[i]));
    body.infer_types();
  }
}

}  // namespace

bool Graph::infer_node(NodeId id) {
  stop_point();
  auto& n = nodes_[id.index];
  std::vector<TensorType> types;
  try {
    const auto& info = n.op.info();
    const bool extra = epilogue(n) != nullptr;
    const auto count = static_cast<int>(n.inputs.size());
    if (count < info.min_inputs || (count > info.max_inputs && !extra))
      fail(ErrorCode::bad_file, "{} inputs, wanted {}", count,
           info.max_inputs == kMany             ? fmt::format("{} or more", info.min_inputs)
           : info.min_inputs == info.max_inputs ? std::to_string(info.min_inputs)
                                                : fmt::format("{} to {}", info.min_inputs, info.max_inputs));
    for (int i = 0; i < info.min_inputs; ++i)
      if (!n.inputs[static_cast<std::size_t>(i)].valid() && !has(info.traits, Trait::control_flow))
        fail(ErrorCode::bad_file, "input {} is missing", i);
    InferContext context(*this, n);
    n.op->infer(context);
    types = std::move(context.result());
    if (extra) types[0] = infer_epilogue(*this, n, n.bodies[0], types[0]);
    if (extra) infer_further_bodies(*this, n);
  } catch (const Error& e) {
    throw NodeError(e.code(), fmt::format("node \"{}\" ({})", label(id), n.op.name()), e.what());
  }
  bool changed = false;
  for (std::size_t i = 0; i < n.outputs.size(); ++i) {
    auto& v = values_[n.outputs[i].index];
    // What a file says of an unknown operator's outputs is kept.
    const auto& now = types[i];
    const bool knows_less = v.type.element != ElementType::undefined ||
                            (v.type.shape.ranked() && !now.shape.ranked());  // constants of other types
    if (v.type == now || (now.element == ElementType::undefined && knows_less)) continue;
    v.type = std::move(types[i]);
    changed = true;
  }
  return changed;
}

}  // namespace lamina
