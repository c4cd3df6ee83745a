/// Problems of real models: nodes as lines, and how much work they are.
#include <algorithm>
#include <filesystem>

#include "base/npz.h"
#include "formats/formats.h"
#include "ops/convolution_depthwise.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/normalization.h"
#include "ops/pooling.h"
#include "ops/recurrent.h"
#include "ops/reduction.h"
#include "ops/resize.h"
#include "ops/shaping.h"
#include "problem.h"
#include "rules/optimize.h"
#include "rules/widen_half.h"

namespace lamina::bench {
namespace {

class Describer {
 public:
  Describer(const Graph& graph, NodeId id) : graph_(graph), node_(graph.node(id)) {}

  std::string line() {
    if (!known()) return {};
    const Op& op = node_.op;
    if (const auto* c = op.as<Convolution>())
      return with_window("conv", explicit_pads(*c, kernel_of(1)), c->groups);
    if (const auto* c = op.as<ConvolutionBackpropData>())
      return c->auto_pad == AutoPad::explicit_ ? with_window("deconv", *c, c->groups) : "";
    if (const auto* c = op.as<BinaryConvolution>())
      return with_window("binconv", explicit_pads(*c, kernel_of(1)), c->groups) +
             (c->pad_value == 0 ? "" : fmt::format(" pad_value={}", c->pad_value));
    if (const auto* m = op.as<MatMul>()) return product(*m);
    if (const auto* p = op.as<MaxPool>()) return pooling("max", *p, p->kernel, p->rounding_type, false);
    if (const auto* p = op.as<AvgPool>())
      return pooling("avg", *p, p->kernel, p->rounding_type, p->exclude_pad);
    if (const auto* s = op.as<Softmax>()) return one("softmax") + fmt::format(" axis={}", s->axis);
    if (op.is<LayerNormalization>()) return one("layernorm");
    if (op.is<LRN>()) return one("lrn");
    if (op.is<MVN>()) return one("mvn") + ints(" axes", 1);
    if (op.is<Transpose>()) return node_.inputs.size() < 2 ? "" : one("transpose") + ints(" order", 1);
    if (op.is<Split>())
      return one("split") + ints(" axis", 1) + fmt::format(" parts={}", node_.outputs.size());
    if (const auto* c = op.as<Concat>()) return concat(*c);
    if (const auto* r = op.as<Interpolate>()) return resizing(*r);
    if (op.is<LSTMSequence>()) return recurrent("lstm", op.as<LSTMSequence>()->direction, 5);
    if (op.is<GRUSequence>()) return recurrent("gru", op.as<GRUSequence>()->direction, 4);
    if (op.name().rfind("Reduce", 0) == 0) return reduction();
    const bool plain = op->changed_attributes().empty() && node_.bodies.empty() &&
                       graph_.type(node_.inputs.at(0)).element == ElementType::f32;
    if (plain && op.has(Trait::elementwise) && node_.inputs.size() <= 3) return elementwise();
    return {};
  }

 private:
  bool known() const {
    const auto fits = [&](ValueId v) { return !v.valid() || graph_.type(v).shape.known(); };
    return std::all_of(node_.inputs.begin(), node_.inputs.end(), fits) &&
           std::all_of(node_.outputs.begin(), node_.outputs.end(), fits);
  }
  std::string type(std::size_t i) const { return to_string(graph_.type(node_.inputs[i])); }
  std::string one(const std::string& kind) const { return kind + " x=" + type(0); }
  static std::string list(const Ints& values) {
    if (std::all_of(values.begin(), values.end(), [&](auto v) { return v == values[0]; }))
      return std::to_string(values.at(0));
    return fmt::format("{}", fmt::join(values, "x"));
  }
  std::string ints(const std::string& name, std::size_t i) const {
    const auto* t = graph_.constant(node_.inputs[i]);
    return t ? fmt::format("{}={}", name, fmt::join(to_ints(*t), ",")) : "";
  }

  Ints kernel_of(std::size_t weights) const {
    const auto dims = graph_.type(node_.inputs[weights]).shape.sizes();
    return {dims.begin() + 2, dims.end()};
  }
  Window explicit_pads(const Window& w, const Ints& kernel) const {
    if (w.auto_pad == AutoPad::explicit_) return w;
    const auto r = resolve(w, std::span(graph_.type(node_.inputs[0]).shape.dims()).subspan(2), kernel);
    return {r.strides, r.dilations, r.pads_begin, r.pads_end, AutoPad::explicit_};
  }

  static std::string window(const Window& w) {
    std::string out;
    const auto add = [&](const char* name, const Ints& values, std::int64_t usual) {
      if (std::any_of(values.begin(), values.end(), [&](auto v) { return v != usual; }))
        out += fmt::format(" {}={}", name, list(values));
    };
    add("strides", w.strides, 1);
    add("dilations", w.dilations, 1);
    if (w.pads_begin == w.pads_end) {
      add("pads", w.pads_begin, 0);
    } else {
      add("pads_begin", w.pads_begin, 0);
      add("pads_end", w.pads_end, 0);
    }
    return out;
  }

  /// The operators of the epilogue as words, as far as there are words.
  std::string words() const {
    std::string out;
    const auto* body = epilogue(node_);
    for (const auto id : body ? body->order() : std::vector<NodeId>()) {
      auto name = body->node(id).op.name();
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      static const std::vector<std::string> known{"relu",  "clamp", "hswish", "hsigmoid", "sigmoid",
                                                  "swish", "gelu",  "tanh",   "elu",      "mish"};
      if (std::find(known.begin(), known.end(), name) != known.end()) out += " " + name;
      if (name == "add") out += " sum";
      if (name == "multiply") out += " scale";
    }
    return out;
  }

  std::string with_window(const std::string& kind, const Window& w, std::int64_t groups) const {
    const bool bias = node_.inputs.size() > 2 && node_.inputs[2].valid();
    return one(kind) + " w=" + type(1) + window(w) + (groups == 1 ? "" : fmt::format(" groups={}", groups)) +
           (bias ? " bias" : "") + words();
  }
  std::string product(const MatMul& m) const {
    const bool bias = node_.inputs.size() > 2 && node_.inputs[2].valid();
    return "matmul a=" + type(0) + " b=" + type(1) + (graph_.constant(node_.inputs[1]) ? "" : " variable") +
           (m.transpose_a ? " ta" : "") + (m.transpose_b ? " tb" : "") + (bias ? " bias" : "") + words();
  }
  std::string pooling(const std::string& kind, const Window& w, const Ints& kernel, RoundingType rounding,
                      bool exclude) const {
    if (node_.outputs.size() > 1) return {};
    return "pool " + kind + " x=" + type(0) + " kernel=" + list(kernel) + window(explicit_pads(w, kernel)) +
           (rounding == RoundingType::floor ? "" : " rounding=ceil") + (exclude ? " exclude_pad" : "");
  }
  std::string concat(const Concat& c) const {
    std::string out = "concat";
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) out += fmt::format(" x{:02}={}", i, type(i));
    return out + fmt::format(" axis={}", c.axis);
  }
  std::string resizing(const Interpolate& r) const {
    const auto out = graph_.type(node_.outputs[0]).shape.sizes(),
               in = graph_.type(node_.inputs[0]).shape.sizes();
    if (out.size() < 3 || out[0] != in[0] || out[1] != in[1]) return {};
    return one("resize") + " to=" + list(Ints(out.begin() + 2, out.end())) +
           fmt::format(
               " mode={} at={}", enum_names<InterpolateMode>[static_cast<std::size_t>(r.mode)],
               enum_names<CoordinateMode>[static_cast<std::size_t>(r.coordinate_transformation_mode)]);
  }
  std::string recurrent(const std::string& kind, Direction direction, std::size_t r) const {
    return one(kind) + fmt::format(" hidden={}", graph_.type(node_.inputs[r]).shape.sizes().back()) +
           (direction == Direction::bidirectional ? " bidirectional" : "");
  }
  std::string reduction() const {
    const auto name = node_.op.name().substr(6);
    if (name != "Mean" && name != "Max" && name != "Min" && name != "Sum" && name != "L2") return {};
    const bool keep = graph_.type(node_.outputs[0]).shape.rank() == graph_.type(node_.inputs[0]).shape.rank();
    return "reduce " + name + " x=" + type(0) + ints(" axes", 1) + (keep ? " keep" : "");
  }
  std::string elementwise() const {
    std::string out = "eltwise " + node_.op.name();
    for (std::size_t i = 0; i < node_.inputs.size(); ++i)
      out += fmt::format(" {}={}", static_cast<char>('a' + i), type(i));
    return out;
  }

  const Graph& graph_;
  const Node& node_;
};

double elements(const Graph& graph, ValueId v) {
  return v.valid() ? static_cast<double>(element_count(graph.type(v).shape.sizes())) : 0;
}

}  // namespace

std::string describe(const Graph& graph, NodeId node) { return Describer(graph, node).line(); }

namespace {

/// Shapes from MODEL.npz where it is (arrays by name, or in0, in1, ...), else 1 for every unknown size.
void fix_shapes(Graph& graph, const std::string& file) {
  const auto beside = std::filesystem::path(file).replace_extension(".npz");
  const NpzFile arrays = std::filesystem::exists(beside) ? read_npz(beside) : NpzFile{};
  for (std::size_t k = 0; k < graph.inputs().size(); ++k) {
    const auto v = graph.inputs()[k];
    auto type = graph.type(v);
    if (!type.shape.ranked() || type.shape.known()) continue;
    for (const auto& [name, array] : arrays)
      if (name == graph.value(v).name || name == "in" + std::to_string(k))
        type.shape = Shape::of(array.shape());
    for (std::size_t i = 0; i < type.shape.rank(); ++i)
      if (!type.shape[i].known()) type.shape[i] = std::max<std::int64_t>(1, type.shape[i].low());
    graph.set_type(v, type);
  }
}

}  // namespace

std::vector<std::string> problems_of_model(const std::string& file) {
  Graph graph = read_file(file).graph;
  widen_half(graph);
  fix_shapes(graph, file);
  graph.infer_types();
  Ledger ledger;
  RuleOptions options;
  options.disable = {"fuse-conv-depthwise"};  // each of the two is a problem of its own
  optimize(graph, options, ledger);
  std::vector<std::string> lines;
  for (const auto id : graph.order())
    if (const auto line = describe(graph, id);
        !line.empty() && std::find(lines.begin(), lines.end(), line) == lines.end())
      lines.push_back(line);
  return lines;
}

double flops_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (const auto work = work_of(graph, node); work.multiply_adds > 0) return 2 * work.multiply_adds;
  const auto* body = epilogue(node);
  const auto operators = static_cast<double>(body ? std::max<std::size_t>(1, body->node_count()) : 1);
  return operators * std::max(elements(graph, node.outputs[0]),
                              node.inputs.empty() ? 0 : elements(graph, node.inputs[0]));
}

double bytes_of(const Graph& graph, NodeId id) {
  double bytes = 0;
  const auto add = [&](ValueId v) {
    if (v.valid()) bytes += elements(graph, v) * bits_of(graph.type(v).element) / 8;
  };
  for (const auto v : graph.node(id).inputs) add(v);
  for (const auto v : graph.node(id).outputs) add(v);
  return bytes;
}

}  // namespace lamina::bench
