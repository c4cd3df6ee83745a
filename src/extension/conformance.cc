#include "extension/conformance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/apart.h"
#include "base/error.h"
#include "extension/guarded_run.h"
#include "extension/samples.h"
#include "ops/eval.h"

namespace lamina {
namespace {

/// The value, where it is a constant or lamina's own operators make it of constants; not valid: neither. What
/// libraries compute is not known before they are tried.
Tensor constant_of(const Graph& g, ValueId v) {
  if (!v.valid()) return {};
  if (const auto* constant = g.constant(v)) return *constant;
  const auto id = g.producer(v);
  if (!id.valid()) return {};
  const auto& n = g.node(id);
  if (n.inputs.empty() || !n.bodies.empty() || n.op.has(Trait::impure | Trait::control_flow) ||
      custom_op(n.op))
    return {};
  std::vector<Tensor> in;
  for (const auto input : n.inputs) {
    in.push_back(constant_of(g, input));
    if (input.valid() && !in.back().valid()) return {};
  }
  try {
    const auto at = std::find(n.outputs.begin(), n.outputs.end(), v) - n.outputs.begin();
    return evaluate_node(n, in, {}).at(static_cast<std::size_t>(at));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::optional<KernelNode> known_node(const Graph& g, NodeId id) {
  const auto& n = g.node(id);
  const auto& op = custom_op(n.op)->declared();
  KernelNode node;
  node.op = n.op;
  for (std::size_t i = 0; i < base_inputs(n); ++i) {
    if (!n.inputs[i].valid()) {
      node.in.push_back({false, {}, {}});
      continue;
    }
    auto type = g.type(n.inputs[i]);
    if (type.element == ElementType::undefined || !type.shape.known()) return std::nullopt;
    if (const auto* port = op.port(op.in, i)) type.element = port->as_taken(type.element);
    const auto constant = constant_of(g, n.inputs[i]);
    node.in.push_back(
        {true, type, constant.valid() ? convert(constant.to_aligned(), type.element) : Tensor()});
  }
  for (const auto v : n.outputs) {
    node.out.push_back({true, g.type(v), {}});
    auto& element = node.out.back().type.element;
    if (const auto* port = op.port(op.out, node.out.size() - 1)) element = port->as_taken(element);
  }
  if (const Graph* body = epilogue(n)) node.out[0].type = body->type(body->inputs()[0]);
  node.label = g.label(id);
  return node;
}

TriedApart tried_apart(const std::string& where, const std::function<std::string()>& body,
                       std::chrono::seconds most) {
  const auto done = run_apart(body, most);
  if (done.started_threads) return {"starts threads of its own"};
  auto text = done.text;
  if (text.starts_with(where + ": ")) text.erase(0, where.size() + 2);
  return {done.ended || !text.empty() ? text : "ended the process", done.in_time};
}

namespace {

using Tensors = std::vector<Tensor>;

constexpr double kTolerance = 1e-4;

/// Constants stay as they are.
Tensor seeded(const KnownTensor& known, std::uint64_t seed) {
  if (!known.present) return {};
  if (known.constant.valid()) return known.constant.to_aligned();
  return seeded_tensor(known.type.element, known.type.shape.sizes(), seed);
}

bool all_finite(const std::vector<Tensor>& tensors) {
  for (const auto& t : tensors)
    if (t.valid() && is_float(t.element_type()))
      for (const double v : to_doubles(t))
        if (!std::isfinite(v)) return false;
  return true;
}

/// Of a result and what it ought to be: a sentence, or nothing.
std::string difference_of(const DeclaredOperation& op, std::size_t i, const Tensor& got, const Tensor& wanted,
                          std::string_view than) {
  if (got.shape() != wanted.shape())
    return fmt::format("output {} is {}, {} gives {}", i, to_string(got.shape()), than,
                       to_string(wanted.shape()));
  const bool usual = op.calls.absolute == 0 && op.calls.relative == 0;
  const double absolute = usual ? kTolerance : op.calls.absolute,
               relative = usual ? kTolerance : op.calls.relative;
  const auto a = to_doubles(got), b = to_doubles(wanted);
  for (std::size_t e = 0; e < a.size(); ++e) {
    const bool same = a[e] == b[e] || (std::isnan(a[e]) && std::isnan(b[e])) ||
                      std::fabs(a[e] - b[e]) <= absolute + relative * std::fabs(b[e]);
    if (!same) return fmt::format("output {}, element {}: {:g}, {} gives {:g}", i, e, a[e], than, b[e]);
  }
  return {};
}

std::string nan_of(const std::vector<Tensor>& got, const std::vector<Tensor>* wanted) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!is_float(got[i].element_type())) continue;
    const auto a = to_doubles(got[i]);
    const auto b =
        wanted && (*wanted)[i].shape() == got[i].shape() ? to_doubles((*wanted)[i]) : std::vector<double>();
    for (std::size_t e = 0; e < a.size(); ++e)
      if (std::isnan(a[e]) && (b.empty() || !std::isnan(b[e])))
        return fmt::format("writes NaN to output {}, element {}, for finite inputs", i, e);
  }
  return {};
}

/// A kernel that is loaded from the state of this one must do the same: what is wanted, as far as that is.
std::string state_problem(const CustomKernel& kernel, const std::vector<Tensor>& in,
                          const std::vector<Tensor>& wanted) {
  const auto state = kernel.state();
  const CustomKernel loaded(kernel.node(), kernel.form(), &state);
  const auto trial = GuardedRun(loaded, in).run(std::byte{0xff});
  if (!trial.problem.empty()) return "loaded: " + trial.problem;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!wanted[i].same_as(trial.outputs[i])) return fmt::format("loaded: output {} is not the same", i);
  return {};
}

/// Of being made, run and given back: bytes that are lost each time.
std::size_t lost_bytes(const KernelNode& node, const KernelForm& form, const std::vector<Tensor>& in) {
  constexpr int kTimes = 40;
  std::size_t least = SIZE_MAX;
  for (int i = 0; i < kTimes && least != 0; ++i) {  // what is kept for the next time fills up
    const auto before = heap_in_use();
    {
      const CustomKernel kernel(node, form);
      GuardedRun(kernel, in).run(std::byte{0});
    }
    const auto after = heap_in_use();
    least = std::min(least, after > before ? after - before : 0);
  }
  return least;
}

constexpr std::string_view kRefused = "is refused";
constexpr std::string_view kNotPure =
    "gives other results when it is run again, and does not say so (LAMINA_IMPURE)";

bool takes(const KernelNode& node, const KernelForm& form, const std::vector<Tensor>& in) {
  try {
    const CustomKernel kernel(node, form);
    return (void)GuardedRun(kernel, in).run(std::byte{0}), true;
  } catch (const Error&) {
    return false;
  }
}

/// Everything that is tried with one form; the first problem.
std::string problem_of(const KernelNode& node, const KernelForm& form, const std::vector<Tensor>& in,
                       const std::vector<Tensor>* wanted) {
  const CustomKernel kernel(node, form);
  const auto& op = kernel.op().declared();
  GuardedRun runner(kernel, in);
  const auto first = runner.run(std::byte{0xff});
  if (!first.problem.empty()) return first.problem;
  const auto second = runner.run(std::byte{0x5a});
  for (std::size_t i = 0; i < first.outputs.size() && !op.has(LAMINA_IMPURE); ++i) {
    if (first.outputs[i].same_as(second.outputs[i])) continue;
    const bool left = first.outputs[i].same_as(runner.run(std::byte{0xff}).outputs[i]);
    return left ? fmt::format("leaves elements of output {} as they were", i)
                : fmt::format("output {}: {}", i, kNotPure);
  }
  if (all_finite(in))
    if (auto problem = nan_of(first.outputs, wanted); !problem.empty()) return problem;
  for (std::size_t i = 0; wanted && !op.has(LAMINA_IMPURE) && i < first.outputs.size(); ++i)
    if (auto problem = difference_of(op, i, first.outputs[i], (*wanted)[i], "the reference");
        !problem.empty())
      return problem;
  if (const auto lost = lost_bytes(node, form, in); lost != 0)
    return fmt::format("loses {} bytes of memory each time", lost);
  if (op.calls.load)
    if (auto problem = state_problem(kernel, in, op.has(LAMINA_IMPURE) ? Tensors() : first.outputs);
        !problem.empty())
      return problem;
  if (form.configuration == SIZE_MAX || op.has(LAMINA_IMPURE)) return {};
  for (const auto& pair : kernel.configuration().in_place) {
    if (pair.first >= in.size() || !in[pair.first].valid() || pair.second >= first.outputs.size()) continue;
    const auto &x = in[pair.first], &y = first.outputs[pair.second];
    if (x.shape() != y.shape() || bits_of(x.element_type()) != bits_of(y.element_type()) ||
        form.in[pair.first] != form.out[pair.second])
      continue;
    const auto over = runner.run(std::byte{0xff}, &pair);
    if (!over.problem.empty()) return "in place: " + over.problem;
    for (std::size_t i = 0; i < over.outputs.size(); ++i)
      if (auto problem = difference_of(op, i, over.outputs[i], first.outputs[i], "with memory of its own");
          !problem.empty())
        return fmt::format("in place of input {}: {}", pair.first, problem);
  }
  return {};
}

std::string problem_of_elements(const KernelNode& node, const std::vector<Tensor>* wanted, const Tensor& in) {
  const ElementwiseKernel kernel(node.op, node.label, node.in[0].type.shape);
  const Tensor x = convert(in, ElementType::f32);
  std::string problem;
  for (const auto count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, x.size()}) {
    const auto n = std::min(count, x.size());
    GuardedMemory from("the input", n * sizeof(float)), to("the output", n * sizeof(float));
    std::memcpy(from.data(), x.raw(), from.bytes());
    std::fill_n(to.data(), to.bytes(), std::byte{0xff});
    kernel(reinterpret_cast<const float*>(from.data()), reinterpret_cast<float*>(to.data()), n);
    std::vector<float> again(n);
    kernel(reinterpret_cast<const float*>(from.data()), again.data(), n);
    for (const auto* m : {&from, &to})
      if (problem.empty()) problem = m->fault();
    if (problem.empty() && std::memcmp(from.data(), x.raw(), from.bytes()) != 0)
      problem = "writes to its input";
    if (problem.empty() && n != 0 && std::memcmp(again.data(), to.data(), to.bytes()) != 0)
      problem = "gives other results when it is run again";
    const auto result = Tensor::wrap(ElementType::f32, {static_cast<std::int64_t>(n)}, to.data());
    if (problem.empty()) problem = nan_of({result}, nullptr);
    kernel(reinterpret_cast<const float*>(from.data()), reinterpret_cast<float*>(from.data()), n);
    if (problem.empty() && std::memcmp(from.data(), to.data(), to.bytes()) != 0)
      problem = "gives something else in place";
    if (problem.empty() && kernel.rounding_changed())
      problem = "changes the rounding mode of floating-point numbers";
    if (!problem.empty()) return "elementwise: " + problem;
    if (n == x.size() && wanted)
      problem = difference_of(custom_op(node.op)->declared(), 0, result.reshaped(x.shape()),
                              convert((*wanted)[0], ElementType::f32), "run or reference");
  }
  return problem.empty() ? "" : "elementwise: " + problem;
}

std::string layouts_of(const KernelForm& form) {
  std::string out;
  for (const auto l : form.in) out += (out.empty() ? "" : ",") + layout_text(l);
  out += " -> ";
  for (std::size_t i = 0; i < form.out.size(); ++i) out += (i ? "," : "") + layout_text(form.out[i]);
  return out;
}

/// The node with its types for another batch, whose outputs are inferred anew: `first` replaces the first
/// size of the first input that is no constant, and of those like it (as many axes, the same first size).
/// Nothing where the outputs do not follow: it is no batch.
std::optional<KernelNode> with_batch(const KernelNode& from, std::int64_t first) {
  KernelNode node = from;
  Graph g;
  std::vector<ValueId> in;
  std::optional<Shape> like;
  for (auto& known : node.in) {
    auto& shape = known.type.shape;
    if (known.present && !known.constant.valid()) {
      if (!like) like = shape;
      if (like->rank() == 0 || (*like)[0].size() == first) return std::nullopt;
      if (shape.rank() == like->rank() && shape[0] == (*like)[0]) shape[0] = first;
    }
    in.push_back(!known.present           ? ValueId{}
                 : known.constant.valid() ? g.add_constant(known.constant)
                                          : g.add_input("", known.type));
  }
  try {
    const auto id = g.add_node(node.op, in, "", static_cast<int>(node.out.size()));
    for (std::size_t i = 0; i < node.out.size(); ++i) node.out[i].type = g.type(g.node(id).outputs[i]);
  } catch (const Error&) {
    return std::nullopt;  // it does not take that shape
  }
  const auto &was = from.out[0].type.shape, &is = node.out[0].type.shape;
  if (was.rank() == 0 || is.rank() == 0 || was[0] == is[0]) return std::nullopt;
  return node;
}

/// What inference says of shapes that are not known, or bounded, must be true of those that are.
std::string inference_problem(const KernelNode& node) {
  for (const bool bounded : {false, true}) {
    Graph g;
    std::vector<ValueId> in;
    for (const auto& known : node.in) {
      auto type = known.type;
      if (known.present && !known.constant.valid())
        for (std::size_t a = 0; a < type.shape.rank(); ++a)
          type.shape[a] = bounded ? Dim(0, 2 * type.shape[a].size() + 1) : Dim();
      in.push_back(!known.present           ? ValueId{}
                   : known.constant.valid() ? g.add_constant(known.constant)
                                            : g.add_input("", type));
    }
    try {
      const auto id = g.add_node(node.op, in, "", static_cast<int>(node.out.size()));
      for (std::size_t i = 0; i < node.out.size(); ++i) {
        const auto& said = g.type(g.node(id).outputs[i]);
        if (said.element != node.out[i].type.element || !said.shape.fits(node.out[i].type.shape))
          return fmt::format("infer: output {} is {} for {} sizes, and {} for known ones", i, to_string(said),
                             bounded ? "bounded" : "unknown", to_string(node.out[i].type));
      }
    } catch (const Error& e) {
      return fmt::format("infer: {} sizes: {}", bounded ? "bounded" : "unknown", e.what());
    }
  }
  return {};
}

class Trials {
 public:
  Trials(std::vector<ConformanceRow>& rows, std::chrono::seconds most) : rows_(rows), most_(most) {}

  void graph(const Graph& g) {
    for (const auto id : g.order()) {
      const auto& n = g.node(id);
      for (const auto& body : n.bodies) graph(body);
      if (!custom_op(n.op)) continue;
      const auto node = known_node(g, id);
      if (!node || !seen_.insert(key_of(*node)).second) continue;
      if (const auto verdict = has_constants(*node); !verdict)
        rows_.push_back({node->label, custom_op(n.op)->where(), verdict.reason(), "", true});
      else
        all_of(*node);
    }
  }

 private:
  static std::string key_of(const KernelNode& node) {
    auto key = custom_op(node.op)->where();
    for (const auto& a : node.op->attributes()) key += " " + a.name + "=" + to_string(a.value);
    for (const auto& known : node.in) key += " " + (known.present ? to_string(known.type) : std::string("-"));
    return key;
  }

  static std::string types_of(const KernelNode& node) {
    std::string out;
    for (const auto& known : node.in)
      out += (out.empty() ? "" : ",") + (known.present ? to_string(known.type) : std::string("-"));
    return out;
  }

  std::string apart(const KernelNode& node, const std::function<std::string()>& body) {
    auto tried = tried_apart(custom_op(node.op)->where(), body, most_);
    in_time_ = tried.in_time;
    return std::move(tried.problem);
  }

  void all_of(const KernelNode& node) {
    const auto infer = apart(node, [&] { return inference_problem(node); });
    rows_.push_back({node.label, custom_op(node.op)->where(), "inference", infer});
    if (!in_time_) return;
    const auto before = rows_.size();
    of_shape(node);
    for (std::size_t i = before; i < rows_.size(); ++i)
      if (!rows_[i].ok()) return;  // smaller and larger ones would say the same
    if (infer.empty() && !node.op.has(Trait::data_dependent))
      for (const std::int64_t first : {0, 1, 3})
        if (const auto other = with_batch(node, first)) of_shape(*other, true);
  }

  /// `may_refuse`: the library may, as these are not the sizes that the node has.
  void of_shape(const KernelNode& labelled, bool may_refuse = false) {
    KernelNode node = labelled;
    node.label.clear();  // rows say it
    const auto& op = custom_op(node.op)->declared();
    std::vector<Tensor> in;
    for (std::size_t i = 0; i < node.in.size(); ++i) in.push_back(seeded(node.in[i], i + 1));
    std::optional<std::vector<Tensor>> wanted;
    const auto try_form = [&](const KernelForm& form, const std::string& name) {
      if (!in_time_) return;
      const auto problem = apart(node, [&] {
        if (may_refuse && !takes(node, form, in)) return std::string(kRefused);
        return problem_of(node, form, in, wanted ? &*wanted : nullptr);
      });
      if (problem == kRefused) return;
      rows_.push_back(
          {labelled.label, custom_op(node.op)->where(),
           fmt::format("{} ({}), {}", name, layouts_of(form), types_of(node)), problem, false,
           op.has(LAMINA_IMPURE) ? "results not compared: the operation says that it is not pure" : ""});
      if (!problem.empty() || wanted) return;
      const CustomKernel kernel(node, form);  // it is known to do no harm
      wanted = run_form(kernel, kernel.prepared_inputs().empty() ? Tensor() : kernel.prepare(), in);
    };
    if (op.calls.reference) try_form(reference_form(node), "reference");
    for (std::size_t c = 0; c < op.configurations.size(); ++c) {
      const auto found = forms_of(node, c);
      if (found.forms.empty() || !accepted(node, c)) continue;
      for (const auto& form : found.forms) try_form(form, op.configurations[c].name);
    }
    if (!in_time_ || !op.calls.elementwise || in[0].element_type() != ElementType::f32) return;
    const auto problem =
        apart(node, [&] { return problem_of_elements(node, wanted ? &*wanted : nullptr, in[0]); });
    rows_.push_back({labelled.label, custom_op(node.op)->where(), "elementwise, " + types_of(node), problem});
  }

  std::vector<ConformanceRow>& rows_;
  const std::chrono::seconds most_;
  bool in_time_ = true;  // the last trial was
  std::set<std::string> seen_;
};

}  // namespace

std::vector<ConformanceRow> check_extensions(const Graph& graph, std::chrono::seconds most) {
  std::vector<ConformanceRow> rows;
  Trials(rows, most).graph(graph);
  return rows;
}

}  // namespace lamina
