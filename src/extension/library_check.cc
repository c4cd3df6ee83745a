/// All operations of a library, tried without a model.
#include "base/error.h"
#include "extension/attribute_text.h"
#include "extension/conformance.h"
#include "extension/known_node.h"
#include "extension/samples.h"

namespace lamina {
namespace {

/// Whether it can be tried: a kernel, a reference or an element-wise function takes the node.
bool is_taken(const KernelNode& node) {
  const auto& op = custom_op(node.op)->declared();
  if (op.calls.elementwise && node.in[0].type.element == ElementType::f32) return true;
  if (op.calls.reference) return (void)CustomKernel(node, reference_form(node)), true;
  for (std::size_t c = 0; c < op.configurations.size(); ++c)
    if (const auto found = forms_of(node, c); !found.forms.empty() && accepted(node, c))
      return (void)CustomKernel(node, found.forms[0]), true;
  return false;
}

bool is_taken(const std::shared_ptr<const DeclaredOperation>& op, const std::string& text) {
  try {
    const auto graph = sample_graph(op, text);
    const auto node = known_node(graph, graph.node(graph.order()[0]));
    return node && is_taken(*node);
  } catch (const Error&) {
    return false;
  }
}

/// The first usual samples that are taken: by their numbers, found out in a process of its own.
Strings taken_samples(const std::shared_ptr<const DeclaredOperation>& op, const std::string& where,
                      std::chrono::seconds most, std::string& problem) {
  constexpr std::size_t kMostTaken = 4;
  const auto usual = usual_samples(*op);
  const auto first_taken = [&] {
    std::string out;
    std::size_t taken = 0;
    for (std::size_t i = 0; i < usual.size() && taken < kMostTaken; ++i)
      if (is_taken(op, usual[i])) out += (taken++ ? "," : "") + std::to_string(i);
    return out;
  };
  const auto numbers = tried_in_subprocess(where, first_taken, most).problem;
  Strings out;
  if (numbers.find_first_not_of("0123456789,") != std::string::npos)
    problem = numbers;
  else if (const auto list = attribute_of_text(LAMINA_INTS, numbers))
    for (const auto i : std::get<Ints>(*list)) out.push_back(usual.at(static_cast<std::size_t>(i)));
  return out;
}

void check_operation(const std::shared_ptr<const DeclaredOperation>& op, std::chrono::seconds most,
                     std::vector<ConformanceRow>& rows) {
  const auto where = CustomOp(op).where();
  std::string problem;
  const auto samples = op->samples.empty() ? taken_samples(op, where, most, problem) : op->samples;
  if (!problem.empty()) rows.push_back({op->type, where, "usual inputs", problem});
  if (problem.empty() && samples.empty())
    rows.push_back({op->type, where, "no inputs are known that it takes: it has no samples", "", true});
  for (const auto& text : samples) {
    const auto takes = [&] {
      const auto graph = sample_graph(op, text);
      if (const auto node = known_node(graph, graph.node(graph.order()[0])))
        return is_taken(*node) ? "" : "no configuration takes it: " + mismatches_of(*node);
      return std::string("the types of its inputs are not known");
    };
    problem = tried_in_subprocess(where, takes, most).problem;
    if (!problem.empty()) {
      rows.push_back({op->type, where, text, problem});
      continue;
    }
    bool good = true;
    for (auto& row : check_extensions(sample_graph(op, text), most)) {
      good = good && row.ok();
      rows.push_back(std::move(row));
    }
    if (!good) return;  // others would say the same, and may take as long to do so
  }
}

}  // namespace

std::vector<ConformanceRow> check_operations(const Extension& extension, std::chrono::seconds most) {
  std::vector<ConformanceRow> rows;
  for (const auto& op : extension.operations) check_operation(op, most, rows);
  return rows;
}

}  // namespace lamina
