#include "formats/tensorflow/importer.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/nearest.h"
#include "formats/reading_points.h"
#include "formats/tensorflow/complex.h"
#include "formats/tensorflow/lists.h"
#include "ops/control.h"
#include "ops/elementwise.h"

namespace lamina::tensorflow {
namespace {

template <std::size_t kCount>
bool is_one_of(std::string_view op, const std::array<std::string_view, kCount>& all) {
  return std::find(all.begin(), all.end(), op) != all.end();
}

bool is_variable(std::string_view op) {
  return is_one_of(
      op, std::to_array<std::string_view>({"Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable",
                                           "ReadVariableOp", "VarIsInitializedOp"}));
}

/// Nodes that give nothing, or nothing that is a result.
bool gives_no_result(std::string_view op) {
  return is_placeholder(op) || is_variable(op) ||
         is_one_of(op, std::to_array<std::string_view>({"Assert", "Const", "NoOp", "PlaceholderWithDefault",
                                                        "Save", "SaveV2", "SaveSlices", "RestoreV2",
                                                        "PrintV2", "Assign", "AssignAdd", "AssignSub",
                                                        "AssignVariableOp", "TensorArrayCloseV3"}));
}

std::string reason_against(std::string_view op) {
  if (is_variable(op))
    return "a variable: the graph is not frozen, wanted a graph whose variables are constants";
  return "";
}

/// One of two values of different shapes.
ValueId chosen(Graph& graph, ValueId condition, ValueId first, ValueId second) {
  std::vector<Graph> bodies(2);
  for (std::size_t side = 0; side < 2; ++side) {
    const auto a = bodies[side].add_input("first", graph.type(first));
    const auto b = bodies[side].add_input("second", graph.type(second));
    bodies[side].add_result("chosen", side == 0 ? a : b);
  }
  return graph.node(graph.add_node(If{}, {condition, first, second}, {}, 1, std::move(bodies))).outputs[0];
}

std::string describe(std::string_view name, std::string_view message) {
  const auto a = parse_attribute(message);
  switch (a.kind) {
    case AttrValue::text:
      return fmt::format("{}={}", name, a.bytes.substr(0, 200));
    case AttrValue::integer:
      return fmt::format("{}={}", name, a.i);
    case AttrValue::flag:
      return fmt::format("{}={}", name, a.i != 0);
    case AttrValue::number:
      return fmt::format("{}={}", name, a.f);
    case AttrValue::type:
      return fmt::format("{}={}", name, name_of_type(a.i));
    default:
      return fmt::format("{}=...", name);
  }
}

}  // namespace

Importer::Importer(const GraphDef& def, std::shared_ptr<const void> owner, const ReadSettings& settings)
    : def_(def),
      owner_(std::move(owner)),
      settings_(settings),
      links_(def),
      values_(def.nodes.size()),
      highest_(def.nodes.size(), 0),
      needed_(def.nodes.size()),
      settable_(settings.settable.begin(), settings.settable.end()) {
  loaded_.extensions = settings.extensions;
}

Loaded Importer::run() {
  loaded_.format = ModelFormat::tensorflow;
  loaded_.version = def_.producer > 0 ? fmt::format("GraphDef {}", def_.producer) : "GraphDef";
  note_optional_inputs();
  branches_.emplace(def_, links_, known_booleans());
  for (std::uint32_t n = 0; n < links_.size(); ++n)
    for (auto ref : links_[n].inputs) highest_[ref.node] = std::max(highest_[ref.node], ref.port);
  find_outputs();
  find_needed();
  // Inputs in the order of the file, whether they are read or not.
  for (std::uint32_t n = 0; n < links_.size(); ++n)
    if (is_placeholder(def_.nodes[n].op) && !is_left_by_tensorflow(n)) import_node(n);
  for (auto n : links_.order())
    if (needed_[n] && values_[n].empty() && links_.frames().of(n) == 0) import_node(n);
  add_results();
  if (!settable_.empty())
    fail(ErrorCode::bad_option, "settable \"{}\": there is no such input with a value in the model",
         *settable_.begin());
  erase_unread_complex(loaded_.graph);
  erase_unread_lists(loaded_.graph);
  loaded_.graph.erase_unused();
  return std::move(loaded_);
}

/// TensorFlow's freezing leaves placeholders for what a loop does not need; only what reads such a one makes
/// it an input.
bool Importer::is_left_by_tensorflow(std::uint32_t n) const {
  return def_.nodes[n].name.starts_with("unused_control_flow_input") && !links_.is_read(n);
}

/// What nothing reads, constants and inputs left out; also constants behind Identity, as frozen variables
/// are, what is on one side of a condition, and what a loop leaves over beside results that are read.
void Importer::find_outputs() {
  std::vector<bool> constant(links_.size());
  std::vector<std::uint32_t> conditional;
  const auto& frames = links_.frames();
  const auto is_left_over = [&](std::uint32_t n) {
    const auto& exits = frames[frames.left_by(n)].exits;
    return frames.of(n) != 0 ||
           std::any_of(exits.begin(), exits.end(), [&](auto e) { return links_.is_read(e); });
  };
  for (auto n : links_.order()) {
    const auto& op = def_.nodes[n].op;
    const auto& inputs = links_[n].inputs;
    constant[n] = op == "Const" || (op == "Identity" && inputs.size() == 1 && constant[inputs[0].node]);
    if (links_.is_read(n) || constant[n] || gives_no_result(op) || branches_->dead(n) || is_left_over(n))
      continue;
    (branches_->inside(n) ? conditional : outputs_).push_back(n);
  }
  if (outputs_.empty()) outputs_ = std::move(conditional);
  std::sort(outputs_.begin(), outputs_.end());
  if (outputs_.empty())
    fail(ErrorCode::bad_file,
         "has no results: every node is read by another one, or is a constant or an input");
}

/// What outputs are made of, the conditions that choose between the sides of a Merge, and inputs that a
/// caller sets.
void Importer::find_needed() {
  std::vector<std::uint32_t> open;
  const auto need = [&](std::uint32_t n) {
    if (needed_[n]) return;
    needed_[n] = true;
    open.push_back(n);
  };
  for (auto n : outputs_) need(n);
  for (std::uint32_t n = 0; n < links_.size(); ++n)
    if (def_.nodes[n].op == "PlaceholderWithDefault" &&
        (settable_.contains(def_.nodes[n].name) || settings_.frozen.contains(def_.nodes[n].name)))
      need(n);
  while (!open.empty()) {
    const auto n = open.back();
    open.pop_back();
    for (auto ref : links_[n].inputs)
      if (!branches_->dead(ref)) need(ref.node);
    if (const auto choice = branches_->choice(n)) need(choice->condition.node);
  }
}

void Importer::import_node(std::uint32_t n) {
  const auto& node = def_.nodes[n];
  note_read(kReadOfNode * (4 + node.inputs.size()));
  auto& graph = this->graph();
  naming(node, [&] {
    const auto first_node = graph.node_slots(), first_value = graph.value_slots();
    const bool is_layer = node.op != "Const" && !is_placeholder(node.op);
    const auto source =
        is_layer ? loaded_.graph.add_source(std::string(node.name), std::string(node.op)) : SourceId();
    if (is_layer) notes_.before("", node.op, node.name);
    values_[n] = convert(n);
    if (is_layer) notes_.after("", node.op, node.name, graph, first_node);
    for (auto i = static_cast<std::uint32_t>(first_node); i < graph.node_slots(); ++i) {
      const Node& made = graph.node({i});
      if (made.erased()) continue;
      if (made.name.empty()) graph.set_node_name({i}, std::string(node.name));
      if (made.sources.empty() && source.valid()) graph.set_sources({i}, {source});
    }
    bind_outputs(n, values_[n], first_value);
  });
}

/// Values have the names that TensorFlow gives them: that of the node, with the number of the output behind a
/// colon.
void Importer::bind_outputs(std::uint32_t n, const Values& values, std::size_t first_value) {
  std::set<ValueId> named;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i].valid() && values[i].index >= first_value && named.insert(values[i]).second) {
      const std::string name(def_.nodes[n].name);
      graph().set_value_name(values[i], i == 0 ? name : fmt::format("{}:{}", name, i));
    }
}

bool Importer::reaches(const Scope& scope, std::uint32_t node) const {
  const auto frame = links_.frames().of(node);
  for (const auto* s = &scope; s; s = s->around)
    if (s->frame == frame) return true;
  return false;
}

ValueId Importer::lookup(Scope& scope, Ref ref) {
  if (!reaches(scope, ref.node))
    fail(ErrorCode::bad_file, "reads \"{}\" ({}) in the midst of another loop", def_.nodes[ref.node].name,
         def_.nodes[ref.node].op);
  if (scope.around && links_.frames().of(ref.node) != scope.frame)
    return carried_in(scope, lookup(*scope.around, ref));
  const auto& values = values_[ref.node];
  if (ref.port >= values.size() || !values[ref.port].valid())
    fail(ErrorCode::bad_file, "reads output {} of \"{}\" ({}), which has {}", ref.port,
         def_.nodes[ref.node].name, def_.nodes[ref.node].op, values.size());
  return values[ref.port];
}

/// The inputs of a node, without those that close a loop, which do not exist yet.
Values Importer::inputs_of(std::uint32_t n) {
  Values out;
  for (auto ref : links_[n].inputs)
    if (!values_[ref.node].empty() || !is_next(def_.nodes[ref.node].op)) out.push_back(lookup(ref));
  return out;
}

Values Importer::convert(std::uint32_t n) {
  const auto& node = def_.nodes[n];
  if (node.op == "Const") return import_constant(node);
  if (is_placeholder(node.op)) return import_placeholder(node);
  if (auto values = import_of_loop(n)) return std::move(*values);
  if (is_merge(node.op)) return import_merge(n);
  auto inputs = inputs_of(n);
  if (node.op == "PlaceholderWithDefault") return import_default(node, inputs);
  if (is_switch(node.op)) return {inputs.at(0), inputs.at(0)};
  if (auto operation = loaded_.extensions->find("tensorflow", node.op))
    return make_custom(n, std::move(operation), std::move(inputs));
  const auto converter = converters().find(node.op);
  if (!converter) {
    list_unsupported(node, reason_against(node.op));
    return make_opaque(node, inputs);
  }
  return convert_or_give_up(n, std::move(inputs), converter);
}

/// What reads an unknown operator's outputs may well fail; it is not to blame.
bool Importer::is_tainted(const Values& inputs) const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](ValueId v) { return scope_->graph.type(v).element == ElementType::undefined; });
}

Values Importer::convert_or_give_up(std::uint32_t n, Values inputs, Converter converter) {
  const auto& node = def_.nodes[n];
  auto& graph = this->graph();
  const auto first_node = graph.node_slots();
  try {
    Call call(*this, node, inputs);
    const bool complex =
        std::any_of(inputs.begin(), inputs.end(), [&](auto v) { return is_complex(graph, v); });
    if (!complex) return converter(call);
    if (auto made = convert_complex(call, converter)) return std::move(*made);
    list_unsupported(node, "complex numbers");
    return make_opaque(node, inputs);
  } catch (const NotSupported& e) {
    if (!is_tainted(inputs)) list_unsupported(node, e.reason);
  } catch (const Error& e) {
    const bool not_ours = e.code() == ErrorCode::unsupported;
    if (e.code() == ErrorCode::internal || ends_the_work(e.code()) || (!not_ours && !is_tainted(inputs)))
      throw;
    if (not_ours) list_unsupported(node, reason_of(e));
  }
  for (auto i = static_cast<std::uint32_t>(graph.node_slots()); i-- > first_node;)
    if (!graph.node({i}).erased()) graph.erase({i});
  return make_opaque(node, inputs);
}

/// The side that lives; or, where only the data says which, both sides and a choice.
Values Importer::import_merge(std::uint32_t n) {
  const auto& node = def_.nodes[n];
  const auto& refs = links_[n].inputs;
  for (std::uint32_t i = 0; i < refs.size(); ++i)
    if (is_next(def_.nodes[refs[i].node].op)) {
      list_unsupported(node, "a loop without an Enter");
      return make_opaque(node, inputs_of(n));
    }
  Values live;
  std::int64_t index = 0;
  for (std::uint32_t i = 0; i < refs.size(); ++i)
    if (!branches_->dead(refs[i])) {
      live.push_back(lookup(refs[i]));
      index = i;
    }
  auto& graph = this->graph();
  if (live.size() == 1)
    return {live[0], graph.add_constant(Tensor::scalar(static_cast<std::int32_t>(index)))};
  const auto choice = branches_->choice(n);
  const auto a = live.size() == 2 ? graph.type(live[0]) : TensorType{},
             b = live.size() == 2 ? graph.type(live[1]) : a;
  if (!choice || a.element != b.element) {
    list_unsupported(node, choice ? fmt::format("sides of types {} and {}", to_string(a), to_string(b))
                                  : "no Switch that decides");
    return make_opaque(node, live);
  }
  const auto condition = lookup(choice->condition);
  const auto first = choice->first_if_true ? live[0] : live[1],
             second = choice->first_if_true ? live[1] : live[0];
  const auto at = graph.add_constant(Tensor::scalar(std::int32_t{choice->first_if_true ? 0 : 1}));
  const auto other = graph.add_constant(Tensor::scalar(std::int32_t{choice->first_if_true ? 1 : 0}));
  const bool alike = a.shape.same(b.shape) || a.shape == b.shape;
  return {alike ? graph.add(Select{}, {condition, first, second}) : chosen(graph, condition, first, second),
          graph.add(Select{}, {condition, at, other})};
}

std::uint32_t Importer::ports(std::uint32_t n) const {
  const auto& op = def_.nodes[n].op;
  if (op.starts_with("FusedBatchNorm")) return 1;
  return static_cast<std::uint32_t>(values_[n].size());
}

void Importer::add_results() {
  for (auto n : outputs_)
    for (std::uint32_t port = 0; port < ports(n); ++port) {
      const std::string name(def_.nodes[n].name);
      loaded_.graph.add_result(port == 0 ? name : fmt::format("{}:{}", name, port), values_[n][port]);
    }
}

Values Importer::make_opaque(const NodeDef& node, const Values& inputs) {
  Opaque op{"", std::string(node.op), "", {}};
  for (const auto& [name, message] : node.attributes) op.attributes.push_back(describe(name, message));
  const auto n = *links_.find(node.name);
  spend_outputs(highest_[n] + 1);
  const auto id = graph().add_node(std::move(op), inputs, {}, static_cast<int>(highest_[n]) + 1);
  return graph().node(id).outputs;
}

void Importer::spend_outputs(std::int64_t count) {
  if ((outputs_budget_ -= count) < 0)
    fail(ErrorCode::bad_file, "wants {} outputs, which are too many for one graph", count);
}

void Importer::list_unsupported(const NodeDef& node, const std::string& reason) {
  const auto [it, added] =
      unsupported_.try_emplace({std::string(node.op), reason}, loaded_.unsupported.size());
  if (added) loaded_.unsupported.push_back({std::string(node.op), "", 0, {}, reason});
  loaded_.unsupported[it->second].nodes.emplace_back(node.name);
}

}  // namespace lamina::tensorflow
