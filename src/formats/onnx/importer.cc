#include "formats/onnx/importer.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "formats/onnx/sequence.h"
#include "formats/read_error.h"
#include "formats/reading_points.h"
#include "ops/control.h"

namespace lamina::onnx {
namespace {

constexpr std::size_t kMostInlined = 200'000;  // nodes that function calls may expand to
constexpr std::string_view kOpaqueTensor = "initializer";
constexpr std::int64_t kOldestOpset = 7;
constexpr std::int64_t kNewestOpset = 28;

/// An error that already says which node of the file it is about.
struct FileNodeError : ReadError {
  using ReadError::ReadError;
};

std::string_view normal_domain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

std::string label(const NodeProto& node) {
  if (!node.name.empty()) return std::string(node.name);
  for (auto name : node.outputs)
    if (!name.empty()) return std::string(name);
  return std::string(node.op_type);
}

std::string describe(const AttributeProto& a) {
  switch (a.type) {
    case AttributeProto::float_:
      return fmt::format("{}={}", a.name, a.f);
    case AttributeProto::int_:
      return fmt::format("{}={}", a.name, a.i);
    case AttributeProto::string:
      return fmt::format("{}={}", a.name, a.s.substr(0, 200));
    case AttributeProto::ints_:
      return fmt::format("{}=[{}]", a.name, fmt::join(a.ints, ","));
    case AttributeProto::floats_:
      return fmt::format("{}=[{}]", a.name, fmt::join(a.floats, ","));
    default:
      return fmt::format("{}=...", a.name);
  }
}

/// Operators whose meaning in opsets before 7 is another one (axis and broadcast attributes, consumed inputs,
/// ...).
bool changed_until_7(std::string_view type) {
  static constexpr auto all = std::to_array<std::string_view>({"Add",      "And",     "BatchNormalization",
                                                               "Cast",     "Clip",    "Concat",
                                                               "Div",      "Dropout", "Equal",
                                                               "GRU",      "Gemm",    "Greater",
                                                               "LSTM",     "Less",    "Mul",
                                                               "Or",       "PRelu",   "Pad",
                                                               "Pow",      "RNN",     "Reshape",
                                                               "Split",    "Sub",     "Tile",
                                                               "Upsample", "Xor"});
  return std::find(all.begin(), all.end(), type) != all.end();
}

std::string version_text(const ModelProto& model) {
  std::string text = fmt::format("IR {}", model.ir_version);
  for (const auto& o : model.opsets)
    text +=
        fmt::format(", {} {}", normal_domain(o.domain).empty() ? "opset" : std::string(o.domain), o.version);
  return text;
}

}  // namespace

Importer::Importer(const ModelProto& model, const ModelSource& source, const ReadSettings& settings)
    : model_(model),
      tensors_(source),
      settings_(settings),
      settable_(settings.settable.begin(), settings.settable.end()) {
  loaded_.extensions = settings.extensions;
  for (const auto& f : model.functions) functions_[{normal_domain(f.domain), f.name, f.overload}] = &f;
  for (const auto& o : model.opsets) opsets_[normal_domain(o.domain)] = o.version;
}

Loaded Importer::run() {
  if (!model_.graph) fail(ErrorCode::bad_file, "is not an ONNX model: it has no graph");
  loaded_.format = ModelFormat::onnx;
  loaded_.version = version_text(model_);
  loaded_.producer = std::string(model_.producer_name);
  for (const auto& [key, value] : model_.metadata) loaded_.metadata.emplace(key, value);
  if (!model_.producer_version.empty()) loaded_.producer += " " + std::string(model_.producer_version);
  if (const auto it = opsets_.find(""); it != opsets_.end()) {
    if (it->second > kNewestOpset)
      warn(fmt::format("opset {} is newer than the newest known one, {}", it->second, kNewestOpset));
    if (it->second < kOldestOpset)
      warn(fmt::format("opset {} is older than the oldest supported one, {}", it->second, kOldestOpset));
  }
  loaded_.graph.name = std::string(model_.graph->name);
  Scope scope{loaded_.graph, nullptr, nullptr, 0, {}, {}, {}};
  declare_initializers(scope, *model_.graph);
  import_inputs(scope);
  import_nodes(scope, model_.graph->nodes);
  std::set<std::string_view> seen;
  const auto values = results(scope, *model_.graph);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto name = model_.graph->outputs[i].name;
    if (!seen.insert(name).second) fail(ErrorCode::bad_file, "two outputs have the name \"{}\"", name);
    if (is_sequence(loaded_.graph, values[i])) {
      const bool absent = sequence_of(loaded_.graph, values[i]).form == SequenceForm::absent;
      list_unsupported(absent ? "output of type optional" : "output of type sequence", std::string(name));
    }
    loaded_.graph.add_result(std::string(name), values[i]);
  }
  erase_sequences(loaded_.graph);
  return std::move(loaded_);
}

void Importer::declare_initializers(Scope& scope, const GraphProto& proto) {
  for (const auto& t : proto.initializers)
    if (note_read(kReadOfNode); !scope.tensors.emplace(t.name, &t).second)
      fail(ErrorCode::bad_file, "two initializers have the name \"{}\"", t.name);
  for (const auto& t : proto.sparse_initializers) scope.sparse_tensors.emplace(t.values.name, &t);
}

Values Importer::results(Scope& scope, const GraphProto& proto) {
  Values out;
  for (const auto& v : proto.outputs) {
    out.push_back(lookup(scope, v.name));
    if (!out.back().valid())
      fail(ErrorCode::bad_file, "the output \"{}\" is an input that was not given", v.name);
  }
  return out;
}

ValueId Importer::lookup(Scope& scope, std::string_view name) {
  if (const auto it = scope.values.find(name); it != scope.values.end()) return it->second;
  const auto dense = scope.tensors.find(name);
  const auto sparse = scope.sparse_tensors.find(name);
  ValueId id;
  if (dense != scope.tensors.end() || sparse != scope.sparse_tensors.end()) {
    try {
      id = scope.graph.add_constant(
          dense != scope.tensors.end() ? read(*dense->second) : read(*sparse->second), std::string(name));
    } catch (const Error& e) {
      if (e.code() != ErrorCode::unsupported) throw;
      list_unsupported("initializer", std::string(name) + ": " + std::string(e.what()));
      id = scope.graph.node(scope.graph.add_node(Opaque{"", std::string(kOpaqueTensor), "", {}}, {}, {}, 1))
               .outputs[0];
    }
  } else if (scope.parent != nullptr) {
    // Captured values are parameters already; what is left are constants, which the body gets a copy of.
    const auto outer = lookup(*scope.parent, name);
    if (!outer.valid() || &scope.parent->graph == &scope.graph) return outer;
    const auto* data = scope.parent->graph.constant(outer);
    if (data == nullptr) fail(ErrorCode::bad_file, "\"{}\" is read by a body before it is made", name);
    id = scope.graph.add_constant(*data, std::string(name));
  } else {
    fail(ErrorCode::bad_file, "\"{}\" is read, but no node makes it", name);
  }
  scope.values.emplace(name, id);
  return id;
}

const AttributeProto* Importer::resolve(const Scope& scope, const AttributeProto& a) const {
  if (a.reference.empty()) return &a;
  if (!scope.frame)
    fail(ErrorCode::bad_file, "attribute \"{}\" refers to one of a function, outside of any", a.name);
  const auto it = scope.frame->attributes.find(a.reference);
  return it == scope.frame->attributes.end() ? nullptr : it->second;
}

void Importer::warn(const std::string& text) {
  if (warned_.insert(text).second && warned_.size() <= 100) loaded_.warnings.push_back(text);
}

void Importer::import_nodes(Scope& scope, const std::vector<NodeProto>& nodes) {
  for (auto n : orders_.sorted(nodes)) import_node(scope, nodes[n]);
}

const FunctionProto* Importer::function_of(const NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto it = functions_.find({normal_domain(node.domain), node.op_type, node.overload});
  return it == functions_.end() ? nullptr : it->second;
}

std::int64_t Importer::version_of(const Scope& scope, std::string_view domain) const {
  if (scope.frame) {
    const auto& opsets = scope.frame->function->opsets;  // in order, each domain once
    const auto it = std::ranges::lower_bound(opsets, domain, {}, &OpsetId::domain);
    if (it != opsets.end() && it->domain == domain) return it->version;
  }
  if (const auto it = opsets_.find(domain); it != opsets_.end()) return it->second;
  if (domain.empty())
    fail(ErrorCode::bad_file, "the model does not say which version of the operator set it uses");
  return 1;
}

void Importer::import_node(Scope& scope, const NodeProto& node) {
  if (scope.frame && ++nodes_inlined_ > kMostInlined)
    fail(ErrorCode::bad_file, "functions expand to more than {} nodes", kMostInlined);
  note_read(kReadOfNode * (4 + node.inputs.size() + node.outputs.size()));
  std::int64_t version = 0;
  try {
    const auto domain = normal_domain(node.domain);
    notes_.before(domain, node.op_type, label(node));
    version = version_of(scope, domain);
    const auto first_node = scope.graph.node_slots(), first_value = scope.graph.value_slots();
    const auto source =
        scope.frame ? scope.frame->source : loaded_.graph.add_source(label(node), std::string(node.op_type));
    const auto values = convert(scope, node, version, source);
    if (!is_call(node, version)) notes_.after(domain, node.op_type, label(node), scope.graph, first_node);
    for (auto n = static_cast<std::uint32_t>(first_node); n < scope.graph.node_slots(); ++n) {
      const Node& made = scope.graph.node({n});
      if (made.erased()) continue;
      if (made.name.empty())
        scope.graph.set_node_name({n}, (scope.frame ? scope.frame->prefix : "") + label(node));
      if (made.sources.empty()) scope.graph.set_sources({n}, {source});
    }
    bind_outputs(scope, node, values, first_value);
  } catch (const FileNodeError&) {
    throw;
  } catch (const Error& e) {
    throw FileNodeError(e, fmt::format("node \"{}\" ({}{}{}, opset {}): {}", label(node), node.domain,
                                       node.domain.empty() ? "" : ".", node.op_type, version, reason_of(e)));
  }
}

/// The nodes of the function that it calls count, not the call.
bool Importer::is_call(const NodeProto& node, std::int64_t version) const {
  return function_of(node) && !loaded_.extensions->find(normal_domain(node.domain), node.op_type,
                                                        std::max<std::int64_t>(version, 1));
}

Values Importer::convert(Scope& scope, const NodeProto& node, std::int64_t version, SourceId source) {
  const auto domain = normal_domain(node.domain);
  if (auto operation = loaded_.extensions->find(domain, node.op_type, std::max<std::int64_t>(version, 1)))
    return make_custom(scope, node, std::move(operation));
  if (const auto* function = function_of(node)) return call_function(scope, node, *function, source);
  const auto converter = converters().find(domain, node.op_type);
  if (!converter || (domain.empty() && version < kOldestOpset && changed_until_7(node.op_type))) {
    const auto newer = loaded_.extensions->find(domain, node.op_type);
    list_unsupported(scope, node, version,
                     converter ? "opsets before 7 are not supported"
                     : newer   ? fmt::format("{} has it from version {} on", newer->origin.name, newer->since)
                               : "");
    return make_opaque(scope, node, version);
  }
  for (auto name : node.inputs)
    if (!name.empty() && !takes_sequences(node.op_type) && is_sequence(scope.graph, lookup(scope, name))) {
      list_unsupported(scope, node, version, "a sequence as an input");
      return make_opaque(scope, node, version);
    }
  return convert_or_give_up(scope, node, version, scope.graph.node_slots(), converter);
}

/// What reads an unknown operator's outputs may well fail; it is not to blame.
bool Importer::is_tainted(Scope& scope, const NodeProto& node) {
  for (auto name : node.inputs) {
    const auto value = name.empty() ? ValueId{} : lookup(scope, name);
    if (value.valid() && scope.graph.type(value).element == ElementType::undefined &&
        !is_sequence(scope.graph, value))
      return true;
  }
  return false;
}

Values Importer::convert_or_give_up(Scope& scope, const NodeProto& node, std::int64_t version,
                                    std::size_t first_node, Converter converter) {
  try {
    Call call(*this, scope, node, version);
    return converter(call);
  } catch (const NotSupported& e) {
    if (!is_tainted(scope, node)) list_unsupported(scope, node, version, e.reason);
  } catch (const Error& e) {
    const bool not_ours = e.code() == ErrorCode::unsupported;
    if (e.code() == ErrorCode::internal || ends_the_work(e.code()) || (!not_ours && !is_tainted(scope, node)))
      throw;
    if (not_ours) list_unsupported(scope, node, version, reason_of(e));
  }
  for (auto n = static_cast<std::uint32_t>(scope.graph.node_slots()); n-- > first_node;) {
    const auto& made = scope.graph.node({n});
    // Opaque initialisers belong to the graph, not to this node.
    if (!made.erased() && !(made.op.is<Opaque>() && made.op.name() == kOpaqueTensor)) scope.graph.erase({n});
  }
  return make_opaque(scope, node, version);
}

Values Importer::call_function(Scope& scope, const NodeProto& node, const FunctionProto& function,
                               SourceId source) {
  if (scope.depth >= kDeepest)
    fail(ErrorCode::bad_file, "functions call each other more than {} deep, at \"{}\"", kDeepest,
         function.name);
  if (node.inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size())
    fail(ErrorCode::bad_file, "the call has {} inputs and {} outputs, the function {} and {}",
         node.inputs.size(), node.outputs.size(), function.inputs.size(), function.outputs.size());
  Frame frame;
  frame.function = &function;
  frame.source = source;
  // Short and unique, so that values of many calls do not have to fight for their names.
  frame.prefix = fmt::format("{}.{}/", node.op_type.substr(0, 64), ++calls_);
  for (const auto& a : function.defaults) frame.attributes[a.name] = &a;
  for (const auto& a : node.attributes)
    if (const auto* value = resolve(scope, a)) frame.attributes[a.name] = value;

  Scope inner{scope.graph, nullptr, &frame, scope.depth + 1, {}, {}, {}};
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    const bool given = i < node.inputs.size() && !node.inputs[i].empty();
    inner.values[function.inputs[i]] = given ? lookup(scope, node.inputs[i]) : ValueId{};
  }
  import_nodes(inner, function.nodes);
  Values values;
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    values.push_back(node.outputs[i].empty() ? ValueId{} : lookup(inner, function.outputs[i]));
  return values;
}

Values Importer::make_opaque(Scope& scope, const NodeProto& node, std::int64_t version) {
  Opaque op{std::string(normal_domain(node.domain)), std::string(node.op_type), std::to_string(version), {}};
  for (const auto& a : node.attributes)
    if (const auto* value = resolve(scope, a)) op.attributes.push_back(describe(*value));
  Values inputs;
  for (auto name : node.inputs) inputs.push_back(name.empty() ? ValueId{} : lookup(scope, name));
  const auto id =
      scope.graph.add_node(std::move(op), std::move(inputs), {}, static_cast<int>(node.outputs.size()));
  return scope.graph.node(id).outputs;
}

void Importer::list_unsupported(const Scope& scope, const NodeProto& node, std::int64_t version,
                                const std::string& reason) {
  const auto domain = std::string(normal_domain(node.domain));
  const auto [it, added] = unsupported_.try_emplace({domain, std::string(node.op_type), version, reason},
                                                    loaded_.unsupported.size());
  if (added) loaded_.unsupported.push_back({std::string(node.op_type), domain, version, {}, reason});
  loaded_.unsupported[it->second].nodes.push_back((scope.frame ? scope.frame->prefix : "") + label(node));
}

void Importer::list_unsupported(const std::string& type, const std::string& name) {
  const auto [it, added] = unsupported_.try_emplace({"", type, 0, ""}, loaded_.unsupported.size());
  if (added) loaded_.unsupported.push_back({type, "", 0, {}, ""});
  loaded_.unsupported[it->second].nodes.push_back(name);
}

void Importer::bind_outputs(Scope& scope, const NodeProto& node, const Values& values,
                            std::size_t first_value) {
  std::set<ValueId> named;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const auto name = node.outputs[i];
    if (name.empty()) continue;
    if (i >= values.size() || !values[i].valid())
      fail(ErrorCode::bad_file, "has the output {} \"{}\", wanted at most {}", i, name, values.size());
    if (!scope.values.emplace(name, values[i]).second)
      fail(ErrorCode::bad_file, "makes \"{}\", which is there already", name);
    if (values[i].index >= first_value && named.insert(values[i]).second)
      scope.graph.set_value_name(values[i], (scope.frame ? scope.frame->prefix : "") + std::string(name));
  }
}

}  // namespace lamina::onnx
