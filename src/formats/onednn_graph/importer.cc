#include "formats/onednn_graph/importer.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <set>

#include "base/element_types.h"
#include "base/words.h"
#include "formats/onednn_graph/custom.h"
#include "formats/read_error.h"
#include "formats/reading_points.h"
#include "ops/control.h"
#include "ops/elementwise.h"
#include "ops/movement.h"

namespace lamina::onednn_graph {
namespace {

std::string name_of_tensor(std::uint64_t id) { return std::to_string(id); }

/// Files that do without operations' names are read, too.
std::string node_name(const OpDef& op) {
  return op.name.empty() ? fmt::format("{}_{}", op.kind, op.id) : op.name;
}

template <class... A>
[[noreturn]] void bad(const OpDef& op, fmt::format_string<A...> text, A&&... args) {
  fail(ErrorCode::bad_file, "{}: {}", label(op), fmt::format(text, std::forward<A>(args)...));
}

/// The first type of a tensor of the operation that lamina has not; empty when there is none.
std::string foreign_type(const OpDef& op) {
  for (const auto* list : {&op.inputs, &op.outputs})
    for (const auto& t : *list)
      if (t.element == ElementType::undefined) return t.dtype;
  return {};
}

/// Whether all scales are powers of two, between these exponents.
bool are_powers_of_two(const Floats& scales, int least, int most) {
  return std::all_of(scales.begin(), scales.end(), [=](double scale) {
    int exponent = 0;
    const auto mantissa = std::frexp(scale, &exponent);
    return std::abs(mantissa) == 0.5 && exponent - 1 >= least && exponent - 1 <= most;
  });
}

std::string describe(const std::string& name, const Attribute& attribute) {
  struct Visitor {
    std::string operator()(const std::string& s) const { return s.substr(0, 200); }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(std::int64_t i) const { return std::to_string(i); }
    std::string operator()(double f) const { return fmt::format("{}", f); }
    std::string operator()(const Ints&) const { return "..."; }
    std::string operator()(const Floats&) const { return "..."; }
  };
  return fmt::format("{}={}", name, std::visit(Visitor{}, attribute));
}

}  // namespace

Loaded Importer::run() {
  loaded_.format = ModelFormat::onednn_graph;
  loaded_.version = def_.version;
  loaded_.metadata = def_.settings;
  loaded_.extensions = settings_.extensions;
  if (def_.ops.empty()) fail(ErrorCode::bad_file, "\"graph\" has no operations");
  note_edges();
  add_inputs();
  for (const auto n : order()) import(def_.ops[n]);
  add_results();
  return std::move(loaded_);
}

void Importer::warn(std::string text) {
  constexpr std::size_t kMost = 100;
  if (loaded_.warnings.size() < kMost) loaded_.warnings.push_back(std::move(text));
}

void Importer::note_edges() {
  for (std::size_t n = 0; n < def_.ops.size(); ++n)
    for (const auto& t : def_.ops[n].outputs) note_output(n, t);
  for (const auto& op : def_.ops)
    for (const auto& t : op.inputs) note_input(op, t);
  for (const auto& op : def_.ops) note_groups(op);
}

/// Notes the groups of a transposed convolution's weights, which may be cast before.
void Importer::note_groups(const OpDef& op) {
  if (op.kind != "ConvTranspose" || op.inputs.size() < 2) return;
  const auto attribute = [&]<class T>(std::string_view name, T fallback) {
    const auto it = op.attributes.find(name);
    const auto* value = it == op.attributes.end() ? nullptr : std::get_if<T>(&it->second);
    return value ? *value : fallback;
  };
  const auto format = lower_case(attribute("weights_format", std::string("xoi")));
  const GroupedWeights weights{attribute("groups", std::int64_t{1}), format == "xoi"};
  if (format != "xoi" && format != "iox") return;
  auto& edge = edges_.at(op.inputs[1].id);
  edge.weights = weights;
  if (edge.producer == kNone) return;
  const auto& maker = def_.ops[edge.producer];
  if (maker.kind == "TypeCast" && maker.inputs.size() == 1) edges_.at(maker.inputs[0].id).weights = weights;
}

void Importer::note_output(std::size_t op, const TensorDef& t) {
  note_read(kReadOfNode);
  auto& edge = edges_[t.id];
  if (def_.ops[op].kind == "End") bad(def_.ops[op], "makes tensor {}, wanted none", t.id);
  if (edge.producer != kNone)
    bad(def_.ops[op], "makes tensor {}, which {} makes already", t.id, label(def_.ops[edge.producer]));
  edge.def = &t;
  edge.producer = op;
  made_ids_.push_back(t.id);
}

/// What is said of a tensor where it is read is what is said where it is made. Files are careless with shapes
/// there: only those of inputs, which nothing computes, must agree.
void Importer::note_input(const OpDef& op, const TensorDef& t) {
  note_read(kReadOfNode);
  auto& edge = edges_[t.id];
  if (!edge.def) {
    edge.def = &t;
    input_ids_.push_back(t.id);
  }
  (op.kind == "End" ? edge.ends : edge.read) = true;
  if (t.dtype != edge.def->dtype)
    bad(op, "tensor {} is {} here and {} elsewhere", t.id, t.dtype, edge.def->dtype);
  if (t.shape.fits(edge.def->shape)) return;
  const auto text = fmt::format("tensor {} has shape {} here and {} elsewhere", t.id, to_string(t.shape),
                                to_string(edge.def->shape));
  if (edge.producer == kNone) bad(op, "{}", text);
  warn(fmt::format("{}: {}", label(op), text));
}

/// Operations behind those that they read from, in the order of the file where that leaves a choice.
std::vector<std::size_t> Importer::order() const {
  const auto count = def_.ops.size();
  std::vector<std::size_t> waits(count), out;
  std::vector<std::vector<std::size_t>> readers(count);
  for (std::size_t n = 0; n < count; ++n)
    for (const auto& t : def_.ops[n].inputs)
      if (const auto producer = edges_.at(t.id).producer; producer != kNone) {
        readers[producer].push_back(n);
        ++waits[n];
      }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t n = 0; n < count; ++n)
    if (waits[n] == 0) ready.push(n);
  while (!ready.empty()) {
    const auto n = ready.top();
    ready.pop();
    out.push_back(n);
    note_read(kReadOfNode + 16 * readers[n].size());
    for (const auto r : readers[n])
      if (--waits[r] == 0) ready.push(r);
  }
  if (out.size() < count) {
    const auto n = static_cast<std::size_t>(
        std::find_if(waits.begin(), waits.end(), [](auto w) { return w != 0; }) - waits.begin());
    fail_reading(FileProblem::cycle, "{}: waits for its own result", label(def_.ops[n]));
  }
  return out;
}

template <class F>
void Importer::for_ports(std::string_view key, const std::vector<std::uint64_t>& ports,
                         const std::vector<std::uint64_t>& all, bool inputs, F&& f) {
  std::set<std::uint64_t> done;
  for (const auto id : ports) {
    const auto it = edges_.find(id);
    if (it == edges_.end() || (it->second.producer == kNone) != inputs) {
      warn(fmt::format("\"{}\" names tensor {}, which {}", key, id,
                       it == edges_.end() ? "is not in the graph"
                       : inputs           ? "an operation makes"
                                          : "no operation makes"));
      continue;
    }
    if (done.insert(id).second) f(it->second);
  }
  for (const auto id : all)
    if (!done.contains(id)) f(edges_.at(id));
}

void Importer::add_inputs() {
  for_ports("input_ports", def_.input_ports, input_ids_, true, [&](Edge& e) { add_input(e); });
}

/// numpy has no bf16: such inputs are f32 and rounded. Types that lamina has not are bytes, which only
/// operations that are not supported read.
void Importer::add_input(Edge& edge) {
  const auto name = name_of_tensor(edge.def->id);
  const auto asked = settings_.shapes.find(name);
  const auto& shape = asked != settings_.shapes.end() ? asked->second : edge.def->shape;
  const auto type = edge.def->element;
  auto& graph = loaded_.graph;
  const auto given = type == ElementType::bf16        ? ElementType::f32
                     : type == ElementType::undefined ? ElementType::u8
                                                      : type;
  edge.value = graph.add_input(name, {given, shape});
  if (type == ElementType::bf16) return round(edge);
  if (type != ElementType::f16) return;
  edge.half = edge.value;
  edge.fits.f16 = true;
  edge.value = graph.add(Convert{ElementType::f32}, {edge.value}, name + "/f32");
}

/// Rounds to the half type that the file declares, unless all numbers are exact in it.
void Importer::round(Edge& edge) {
  const auto type = edge.def->element;
  if (!is_half(type) || edge.fits.of(type) || unrounded_.contains(edge.def->id)) return;
  auto& graph = loaded_.graph;
  edge.half = graph.add(Convert{type}, {edge.value}, fmt::format("{}/{}", edge.def->id, edge.def->dtype));
  edge.value = graph.add(Convert{ElementType::f32}, {edge.half});
  edge.fits = {type == ElementType::bf16, type == ElementType::f16};
}

/// What is subtracted and its zero point differ by 255 at most, which has as many bits as bf16.
Importer::Halves Importer::fit_of_dequantized(const OpDef& op) {
  const auto scales = op.attributes.find("scales"), zeros = op.attributes.find("zps");
  const auto* factors = scales == op.attributes.end() ? nullptr : std::get_if<Floats>(&scales->second);
  if (!factors || op.inputs.empty() || bits_of(op.inputs[0].element) > 8) return {};
  if (zeros != op.attributes.end()) {
    const auto* list = std::get_if<Ints>(&zeros->second);
    if (!list || std::any_of(list->begin(), list->end(), [&](auto z) {
          return is_signed(op.inputs[0].element) ? z < -128 || z > 127 : z < 0 || z > 255;
        }))
      return {};
  }
  return {are_powers_of_two(*factors, -100, 100), are_powers_of_two(*factors, -24, 7)};
}

/// What a Dequantize by powers of two makes of integers of 8 bits, and what gives elements of its inputs.
Importer::Halves Importer::fit_of(const OpDef& op) const {
  constexpr std::string_view kSelect[] = {
      "Abs",       "Concat",  "MaxPool", "Maximum",       "Minimum",         "ReLU",    "ReduceMax",
      "ReduceMin", "Reorder", "Select",  "StaticReshape", "StaticTranspose", "TypeCast"};
  if (op.kind == "Dequantize") return fit_of_dequantized(op);
  if (std::find(std::begin(kSelect), std::end(kSelect), op.kind) == std::end(kSelect)) return {};
  Halves all{true, true};
  for (const auto& t : op.inputs) {
    if (!is_float(t.element)) continue;
    const auto& fits = edges_.at(t.id).fits;
    all = {all.bf16 && fits.bf16, all.f16 && fits.f16};
  }
  return all;
}

void Importer::import(const OpDef& op) {
  note_read(kReadOfNode * (4 + op.inputs.size() + op.outputs.size()));
  if (op.kind == "End") return;
  auto& graph = loaded_.graph;
  const auto first_node = graph.node_slots(), first_value = graph.value_slots();
  Values inputs;
  for (const auto& t : op.inputs) inputs.push_back(edges_.at(t.id).value);
  try {
    notes_.before("", op.kind, node_name(op));
    auto values = convert(op, inputs);
    notes_.after("", op.kind, node_name(op), graph, first_node);
    finish(op, std::move(values), first_node, first_value);
  } catch (const Error& e) {
    throw ReadError(e, fmt::format("{}: {}", label(op), reason_of(e)));
  }
}

void Importer::list_unsupported(const OpDef& op, const std::string& reason) {
  const auto [it, added] = unsupported_.try_emplace({op.kind, reason}, loaded_.unsupported.size());
  if (added) loaded_.unsupported.push_back({op.kind, "", 0, {}, reason});
  loaded_.unsupported[it->second].nodes.push_back(node_name(op));
}

/// Makes an Opaque whose outputs have the types that the file declares, so that later operations are checked,
/// too.
Values Importer::make_opaque(const OpDef& op, const Values& inputs) {
  Strings attributes;
  for (const auto& [name, value] : op.attributes) attributes.push_back(describe(name, value));
  auto& graph = loaded_.graph;
  auto outputs = graph
                     .node(graph.add_node(Opaque{"", op.kind, "", std::move(attributes)}, inputs, {},
                                          static_cast<int>(op.outputs.size())))
                     .outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto element = op.outputs[i].element;
    graph.set_type(outputs[i], {is_half(element) ? ElementType::f32 : element, op.outputs[i].shape});
  }
  return outputs;
}

Values Importer::convert(const OpDef& op, const Values& inputs) {
  auto& graph = loaded_.graph;
  const auto first_node = graph.node_slots();
  const auto weights = op.outputs.empty() ? GroupedWeights() : edges_.at(op.outputs[0].id).weights;
  const Call call(graph, folding_budget_, op, inputs, weights);
  if (auto operation = loaded_.extensions->find(kDomain, op.kind))
    return make_custom(call, std::move(operation));
  const auto converter = converters().find(op.kind);
  const auto foreign = foreign_type(op);
  if (!converter || !foreign.empty()) {
    list_unsupported(op, foreign.empty() ? "" : fmt::format("tensors of {}", foreign));
    return make_opaque(op, inputs);
  }
  try {
    return converter(call);
  } catch (const NotSupported& e) {
    list_unsupported(op, e.reason);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::unsupported) throw;
    list_unsupported(op, reason_of(e));
  }
  for (auto n = static_cast<std::uint32_t>(graph.node_slots()); n-- > first_node;)
    if (!graph.node({n}).erased()) graph.erase({n});
  return make_opaque(op, inputs);
}

/// An empty shape stands for a scalar and for one that is not known.
void Importer::check_said(ValueId v, const TensorDef& said) const {
  const auto& type = loaded_.graph.type(v);
  if (settings_.shapes.empty() && said.shape.rank() != 0 && !type.shape.fits(said.shape))
    fail(ErrorCode::bad_file, "tensor {} has shape {}, which its inputs make {}", said.id,
         to_string(said.shape), to_string(type.shape));
  const auto wanted = is_half(said.element) ? ElementType::f32 : said.element;
  if (wanted != type.element && wanted != ElementType::undefined && type.element != ElementType::undefined)
    fail(ErrorCode::bad_file, "tensor {} is {}, which its inputs make {}", said.id, said.dtype,
         name_of(type.element));
}

void Importer::finish(const OpDef& op, Values values, std::size_t first_node, std::size_t first_value) {
  auto& graph = loaded_.graph;
  if (values.size() < op.outputs.size())
    fail(ErrorCode::bad_file, "has {} outputs, wanted {}", op.outputs.size(), values.size());
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    auto& edge = edges_.at(op.outputs[i].id);
    check_said(values[i], op.outputs[i]);
    const bool own =
        values[i].index >= first_value && graph.value(values[i]).kind == ValueKind::output_of_node;
    edge.value = own ? values[i] : graph.add(Identity{}, {values[i]});
    edge.fits = fit_of(op);
    round(edge);
    graph.set_value_name(edge.value, name_of_tensor(op.outputs[i].id));
  }
  const auto source = graph.add_source(node_name(op), op.kind);
  for (auto n = static_cast<std::uint32_t>(first_node); n < graph.node_slots(); ++n) {
    if (graph.node({n}).erased()) continue;
    graph.set_node_name({n}, node_name(op));
    graph.set_sources({n}, {source});
  }
}

/// What no operation reads, and what End marks.
void Importer::add_results() {
  std::vector<std::uint64_t> outputs;
  for (const auto id : made_ids_)
    if (const auto& edge = edges_.at(id); edge.ends || !edge.read) outputs.push_back(id);
  for_ports("output_ports", def_.output_ports, outputs, false, [&](const Edge& e) { add_result(e); });
  if (loaded_.graph.results().empty()) fail(ErrorCode::bad_file, "no operation makes a result");
  loaded_.graph.erase_unused();
}

/// f16 is given as such, bf16 as f32.
void Importer::add_result(const Edge& edge) {
  auto& graph = loaded_.graph;
  const auto name = name_of_tensor(edge.def->id);
  auto v = edge.value;
  if (edge.def->element == ElementType::f16)
    v = edge.half.valid() ? edge.half : graph.add(Convert{ElementType::f16}, {v}, name + "/f16");
  graph.add_result(name, v);
}

}  // namespace lamina::onednn_graph
