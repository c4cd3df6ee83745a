#include "explain/names.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/nearest.h"

namespace lamina {
namespace {

[[noreturn]] void no_such_layer(const std::vector<std::string>& names, std::string_view name) {
  fail(ErrorCode::bad_input, "there is no layer \"{}\"{}", name, did_you_mean(name, names));
}

/// Names of layers and values, those in bodies of control flow included.
void add_names(std::vector<std::string>& layers, std::vector<std::string>& values, const Graph& g) {
  for (const auto& source : g.sources) layers.push_back(source.name);
  for (const auto id : g.order()) {
    for (const auto v : g.node(id).outputs) values.push_back(g.value(v).name);
    for (const auto& body : g.node(id).bodies) add_names(layers, values, body);
  }
}

/// The name holds the other one, with no letter or digit next to it: "conv.bias" and "fused conv" hold
/// "conv".
bool has_word(std::string_view name, const std::string& known) {
  const auto joins = [&](std::size_t at) {
    return at < name.size() && std::isalnum(static_cast<unsigned char>(name[at]));
  };
  for (auto at = name.find(known); !known.empty() && at != std::string_view::npos;
       at = name.find(known, at + 1))
    if ((at == 0 || !joins(at - 1)) && !joins(at + known.size())) return true;
  return false;
}

}  // namespace

void require_possible(const Graph& g, std::string_view name) {
  std::vector<std::string> layers, values;
  add_names(layers, values, g);
  for (std::uint32_t v = 0; v < g.value_slots(); ++v) values.push_back(g.value({v}).name);
  const auto part = [&](const std::string& known) { return has_word(name, known); };
  if (std::any_of(layers.begin(), layers.end(), part) || std::any_of(values.begin(), values.end(), part))
    return;
  no_such_layer(layers, name);
}

std::vector<const LayerOutcome*> outcomes_named(const Findings& all, std::string_view name) {
  std::vector<const LayerOutcome*> out;
  for (const auto& f : all.outcomes)
    if (f.name == name) out.push_back(&f);
  if (!out.empty()) return out;
  for (const auto& f : all.outcomes)
    for (const auto& n : f.nodes)
      if (n.representative && n.plan->graph.label(n.node) == name) out.push_back(&f);
  if (!out.empty()) return out;
  std::vector<std::string> names;
  for (const auto& f : all.outcomes) names.push_back(f.name);
  no_such_layer(names, name);
}

}  // namespace lamina
