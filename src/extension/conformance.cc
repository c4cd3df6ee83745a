#include "extension/conformance.h"

#include <set>

#include "base/error.h"
#include "base/subprocess.h"
#include "extension/kernel_problems.h"
#include "extension/known_node.h"
#include "extension/samples.h"
#include "ops/eval.h"

namespace lamina {
SubprocessTrial tried_in_subprocess(const std::string& where, const std::function<std::string()>& body,
                                    std::chrono::seconds most) {
  const auto done = run_in_subprocess(body, most);
  if (done.started_threads) return {"starts threads of its own"};
  auto text = done.text;
  if (text.starts_with(where + ": ")) text.erase(0, where.size() + 2);
  return {done.ended || !text.empty() ? text : "ended the process", done.in_time};
}

namespace {

/// Constants stay as they are.
Tensor seeded(const KnownTensor& known, std::uint64_t seed) {
  if (!known.present) return {};
  if (known.constant.valid()) return known.constant.to_aligned();
  return seeded_tensor(known.type.element, known.type.shape.sizes(), seed);
}

constexpr std::string_view kRefused = "is refused";

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
      const auto node = known_node(g, n, g.label(id));
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
    auto tried = tried_in_subprocess(custom_op(node.op)->where(), body, most_);
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
        if (may_refuse && !takes_inputs(node, form, in)) return std::string(kRefused);
        return kernel_problem(node, form, in, wanted ? &*wanted : nullptr);
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
        apart(node, [&] { return elementwise_problem(node, wanted ? &*wanted : nullptr, in[0]); });
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
