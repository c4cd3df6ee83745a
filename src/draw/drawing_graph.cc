/// Drawings of graphs.
#include <algorithm>
#include <set>

#include "base/table_text.h"
#include "draw/drawing.h"
#include "ops/control.h"
#include "ops/convolution.h"
#include "ops/eval.h"
#include "ops/matmul.h"
#include "ops/pooling.h"

namespace lamina {
namespace {

constexpr std::string_view kTimes = "\xC3\x97", kArrow = "\xE2\x86\x92";
/// Bodies with more nodes are not drawn, only counted.
constexpr std::size_t kDrawnBody = 60;
/// Longest name of a layer that a stage reads.
constexpr std::size_t kOperandLength = 24;

std::string joined(const Ints& values, std::string_view separator) {
  return fmt::format("{}", fmt::join(values, separator));
}

/// Nothing when all values are `usual`, else "name 2" or "name 1,2".
void add_window(std::vector<std::string>& out, std::string_view name, const Ints& values,
                std::int64_t usual) {
  if (std::all_of(values.begin(), values.end(), [&](auto v) { return v == usual; })) return;
  const bool same = std::all_of(values.begin(), values.end(), [&](auto v) { return v == values[0]; });
  out.push_back(fmt::format("{} {}", name, same ? std::to_string(values[0]) : joined(values, ",")));
}

void add_window(std::vector<std::string>& out, const Window& w) {
  add_window(out, "stride", w.strides, 1);
  add_window(out, "dilation", w.dilations, 1);
  if (w.auto_pad != AutoPad::explicit_)
    out.push_back(fmt::format("pad {}", enum_names<AutoPad>[static_cast<std::size_t>(w.auto_pad)]));
  else if (w.pads_begin == w.pads_end)
    add_window(out, "pad", w.pads_begin, 0);
  else
    out.push_back(fmt::format("pad {}..{}", joined(w.pads_begin, ","), joined(w.pads_end, ",")));
}

std::vector<std::string> window_words(const Ints& kernel, const Window& w) {
  std::vector<std::string> out{joined(kernel, kTimes)};
  add_window(out, w);
  return out;
}

/// Kernel and channels, from the weights' shape: "3×3, 64→128".
void add_weights(std::vector<std::string>& out, const Graph& g, const Node& n, std::int64_t groups,
                 bool transposed) {
  const auto& shape = g.type(n.inputs[1]).shape;
  if (!shape.known() || shape.rank() < 3) return;
  const auto dims = shape.sizes();
  out.push_back(joined(Ints(dims.begin() + 2, dims.end()), kTimes));
  const auto in = transposed ? dims[0] : dims[1] * groups, to = transposed ? dims[1] * groups : dims[0];
  if (groups > 1 && groups == in && in == to)
    out.push_back(fmt::format("depthwise {}", in));
  else
    out.push_back(fmt::format("{} {} {}", in, kArrow, to));
  if (groups > 1 && groups != in) out.push_back(fmt::format("{} groups", groups));
}

std::string short_value(const Tensor& t) {
  if (t.size() != 1 || !t.raw()) {
    if (is_float(t.element_type()) || t.size() > 6 || t.rank() != 1 || t.size() == 0 || !t.raw())
      return short_type({t.element_type(), Shape::of(t.shape())});
    return "[" + joined(to_ints(t), ",") + "]";
  }
  if (!is_float(t.element_type())) return std::to_string(to_ints(t)[0]);
  return fmt::format("{:.6g}", to_doubles(t.to_aligned())[0]);
}

/// An attribute's value without quotes, whole numbers without a fraction, not too long.
std::string short_text(const Attribute& value) {
  std::string out = to_string(value);
  if (const auto* text = std::get_if<std::string>(&value)) out = *text;
  if (const auto* real = std::get_if<double>(&value)) out = fmt::format("{:.6g}", *real);
  return shortened(out, 40);
}

bool is_number(ElementType type) {
  return type != ElementType::undefined && (is_float(type) || bits_of(type) >= 8);
}

/// True for attributes that only the tooltip shows.
bool is_dull(const NamedAttribute& a) {
  if (const auto* yes = std::get_if<bool>(&a.value); yes && !*yes) return true;
  return a.name == "special_zero" || a.name == "rounding_type" || a.name == "index_element_type";
}

/// Role of a constant input: "weights", "bias", ...
std::string_view role(const Node& n, std::size_t input) {
  auto words = n.op.info().roles;
  for (std::size_t i = 0; i < input && !words.empty(); ++i)
    words.remove_prefix(std::min(words.size(), words.find(' ')) + (words.find(' ') != words.npos));
  return words.empty() ? "const" : words.substr(0, words.find(' '));
}

/// Attributes that differ from the default, and small constants that are read.
std::vector<std::string> attribute_words(const Graph& g, const Node& n) {
  std::vector<std::string> out;
  if (const auto* c = n.op.as<Convolution>()) {
    add_weights(out, g, n, c->groups, false);
    add_window(out, *c);
    return out;
  }
  if (const auto* c = n.op.as<ConvolutionBackpropData>()) {
    add_weights(out, g, n, c->groups, true);
    add_window(out, *c);
    return out;
  }
  if (const auto* pool = n.op.as<MaxPool>()) return window_words(pool->kernel, *pool);
  if (const auto* pool = n.op.as<AvgPool>()) {
    out = window_words(pool->kernel, *pool);
    if (pool->exclude_pad && !out.empty() && out.back().starts_with("pad")) out.back() += " excluded";
    return out;
  }
  for (const auto& a : n.op->changed_attributes())
    if (!is_dull(a))
      out.push_back(std::get_if<bool>(&a.value) ? a.name : fmt::format("{} {}", a.name, short_text(a.value)));
  for (std::size_t i = 0; i < base_inputs(n); ++i)
    if (const auto* t = n.inputs[i].valid() ? g.constant(n.inputs[i]) : nullptr;
        t && is_number(t->element_type()))
      out.push_back(fmt::format("{} {}", role(n, i), short_value(*t)));
  return out;
}

/// Constants of stages: the value, or in brackets the sizes that are not 1.
std::string stage_value(const Tensor& t) {
  if (t.size() == 1) return short_value(t);
  Ints sizes;
  std::copy_if(t.shape().begin(), t.shape().end(), std::back_inserter(sizes), [](auto d) { return d != 1; });
  return "[" + joined(sizes, kTimes) + "]";
}

/// What a stage reads beside the node's own result: a constant's value, or the layer it comes from.
std::string operand_name(const Graph& g, ValueId v) {
  if (const auto* t = g.constant(v)) return stage_value(*t);
  const auto node = g.producer(v);
  return shortened(node.valid() ? g.label(node) : g.value(v).name, kOperandLength);
}

/// Stages of an epilogue: "Clamp 0 6", "Add [64]", "Add conv_7".
std::vector<std::string> stages_of(const Graph& g, const Node& n) {
  std::vector<std::string> out;
  const Graph* body = epilogue(n);
  if (!body) return out;
  for (const auto id : body->order()) {
    const auto& stage = body->node(id);
    std::string text = stage.op.name();
    for (const auto v : stage.inputs) {
      if (!v.valid()) continue;
      if (const auto* t = body->constant(v)) text += " " + stage_value(*t);
      for (std::size_t p = 1; p < body->inputs().size(); ++p)
        if (body->inputs()[p] == v) text += " " + operand_name(g, n.inputs[base_inputs(n) + p - 1]);
    }
    for (const auto& a : stage.op->changed_attributes())
      if (!is_dull(a)) text += " " + short_text(a.value);
    out.push_back(text);
  }
  return out;
}

std::string tooltip_of(const Graph& g, NodeId id, const std::vector<std::string>& stages) {
  const auto& n = g.node(id);
  std::string out = fmt::format("{} \"{}\"", n.op.name(), g.label(id));
  for (const auto s : n.sources)
    if (s.index < g.sources.size())
      out += fmt::format("\nlayer of the file: {} ({})", g.sources[s.index].name, g.sources[s.index].type);
  for (const auto& a : n.op->attributes())
    out += fmt::format("\n{} = {}", a.name, shortened(to_string(a.value), 400));
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    const auto v = n.inputs[i];
    if (!v.valid()) continue;
    out += fmt::format("\ninput {}: {} {}{}", i, g.value(v).name, to_string(g.type(v)),
                       g.constant(v) ? " (constant)" : "");
  }
  for (const auto& s : stages) out += "\nthen " + s;
  for (std::size_t i = 0; i < n.outputs.size(); ++i)
    out += fmt::format("\noutput {}: {} {}", i, g.value(n.outputs[i]).name, to_string(g.type(n.outputs[i])));
  return out;
}

std::size_t all_nodes(const Graph& g) {
  std::size_t sum = 0;
  for (const auto id : g.order()) {
    ++sum;
    for (const auto& body : g.node(id).bodies) sum += all_nodes(body);
  }
  return sum;
}

void add_bodies(DrawingNode& p, const Node& n, const std::vector<Source>* file) {
  if (!n.op.has(Trait::control_flow)) return;
  for (std::size_t b = epilogue(n) ? 1 : 0; b < n.bodies.size(); ++b) {
    const auto what = n.op.is<If>() ? (b == 0 ? "then" : "else") : epilogue(n) ? "first" : "body";
    const auto count = all_nodes(n.bodies[b]);
    if (count > kDrawnBody) {
      p.lines.push_back(fmt::format("{}: {} nodes, not drawn", what, count));
      continue;
    }
    p.bodies.push_back(file ? drawing_of_file(n.bodies[b], *file) : drawing_of(n.bodies[b]));
    p.bodies.back().title = fmt::format("{}: {} node{}", what, count, count == 1 ? "" : "s");
  }
}

bool is_small(const TensorType& t) {
  if (is_float(t.element) || !t.shape.known()) return false;
  return element_count(t.shape.sizes()) <= 64;
}

/// Nodes for inputs, operators and results, and which output each value is.
class Maker {
 public:
  explicit Maker(const Graph& g, const std::vector<Source>* file = nullptr) : g_(g), file_(file) {}

  Drawing make(std::map<NodeId, std::size_t>* index) {
    p_.title = g_.name;
    for (const auto v : g_.inputs()) {
      made_[v] = {p_.nodes.size(), 0};
      p_.nodes.push_back(port("input", g_.value(v).name, g_.type(v)));
      p_.nodes.back().ports.push_back(short_type(g_.type(v)));
    }
    for (const auto id : g_.order()) {
      const auto at = p_.nodes.size();
      if (index) (*index)[id] = at;
      p_.nodes.push_back(drawing_of(g_, id, file_));
      const auto& n = g_.node(id);
      for (std::size_t o = 0; o < n.outputs.size(); ++o) made_[n.outputs[o]] = {at, o};
      for (const auto v : n.inputs)
        if (v.valid()) connect(v, at);
    }
    for (const auto& r : g_.results()) {
      p_.nodes.push_back(port("output", r.name, g_.type(r.value)));
      connect(r.value, p_.nodes.size() - 1);
    }
    return std::move(p_);
  }

 private:
  static DrawingNode port(const char* what, const std::string& name, const TensorType& type) {
    DrawingNode n;
    n.form = DrawingNode::Form::pill;
    n.hue = kPort;
    n.title = name;
    n.tooltip = fmt::format("{} \"{}\" {}", what, name, to_string(type));
    return n;
  }
  void connect(ValueId v, std::size_t to) {
    const auto from = made_.find(v);
    if (from == made_.end()) return;  // a constant
    p_.edges.push_back({from->second.first, from->second.second, to,
                        fmt::format("{} {}", g_.value(v).name, to_string(g_.type(v))), is_small(g_.type(v))});
  }

  const Graph& g_;
  const std::vector<Source>* file_;
  Drawing p_;
  std::map<ValueId, std::pair<std::size_t, std::size_t>> made_;
};

}  // namespace

std::string short_dims(const Shape& shape) {
  if (!shape.ranked()) return "[...]";
  std::string out;
  for (const auto& d : shape.dims())
    out += (out.empty() ? "" : std::string(kTimes)) + shortened(to_string(d), 14);
  return out;
}

std::string short_type(const TensorType& type) {
  const auto dims = short_dims(type.shape);
  return fmt::format("{}{}{}", name_of(type.element), dims.empty() ? "" : " ", dims);
}

DrawingNode drawing_of(const Graph& g, NodeId id, const std::vector<Source>* file) {
  const auto& n = g.node(id);
  DrawingNode p;
  p.hue = n.op.family();
  p.title = n.op.name();
  p.name = n.name.empty() && !n.outputs.empty() ? g.value(n.outputs[0]).name : n.name;
  p.lines = attribute_words(g, n);
  p.stages = stages_of(g, n);
  p.tooltip = tooltip_of(g, id, p.stages);
  for (const auto v : n.outputs) p.ports.push_back(short_type(g.type(v)));
  add_bodies(p, n, file);
  return p;
}

Drawing drawing_of(const Graph& g, std::map<NodeId, std::size_t>* nodes) { return Maker(g).make(nodes); }

Drawing drawing_of_file(const Graph& g, const std::vector<Source>& file,
                        std::map<NodeId, std::size_t>* nodes) {
  std::map<NodeId, std::size_t> index;
  const auto as_read = Maker(g, &file).make(&index);
  auto out = as_in_file(as_read, g, file, index);
  if (nodes) *nodes = std::move(index);
  return out;
}

void match(DrawingOf before, DrawingOf after, const Ledger& ledger) {
  std::map<SourceId, int> group;
  int count = 0;
  for (const auto id : after.graph.order()) {
    auto& p = after.drawing.nodes[after.nodes.at(id)];
    p.group = count++;
    p.corner = fmt::format("#{}", count);
    for (const auto s : after.graph.node(id).sources) group.emplace(s, p.group);
  }
  for (const auto id : before.graph.order()) {
    auto& p = before.drawing.nodes[before.nodes.at(id)];
    for (const auto s : before.graph.node(id).sources)
      if (const auto it = group.find(s); it != group.end()) p.group = it->second;
    p.faded = p.group < 0;
    p.corner = p.faded ? "removed" : fmt::format("{} #{}", kArrow, p.group + 1);
    for (const auto s : before.graph.node(id).sources)
      for (const auto& e : ledger.about(before.graph.sources.at(s.index).name))
        if (e.kind != LedgerEntry::Kind::refused && std::ranges::find(e.ids, s) != e.ids.end())
          if (const auto line = "\n" + to_string(e); p.tooltip.find(line) == std::string::npos)
            p.tooltip += line;
  }
}

}  // namespace lamina
