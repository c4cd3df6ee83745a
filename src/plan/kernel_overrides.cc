#include "plan/kernel_overrides.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "base/words.h"
#include "ops/operators.h"
#include "plan/decompose.h"

namespace lamina {
namespace {

/// "conv" is short for Convolution.
bool is_kind(std::string_view what, std::string_view op) {
  const auto name = lower_case(what);
  return lower_case(op) == (name == "conv" ? "convolution" : name);
}

bool has_layer(const Graph& graph, const Node& node, NodeId id, const std::string& name) {
  return graph.label(id) == name || std::any_of(node.sources.begin(), node.sources.end(), [&](SourceId s) {
           return graph.sources.at(s.index).name == name;
         });
}

std::pair<std::string, std::string> parts_of(const std::string& forced) {
  const auto equals = forced.rfind('=');  // names of layers may hold some
  if (equals == std::string::npos || equals == 0 || equals + 1 == forced.size())
    fail(ErrorCode::bad_option, "force \"{}\": wanted NODE=LABEL or OPERATOR=LABEL", forced);
  return {forced.substr(0, equals), forced.substr(equals + 1)};
}

/// The label, or its first words.
bool fits(const std::string& label, const std::string& wanted) {
  return label.starts_with(wanted) &&
         (label.size() == wanted.size() || label[wanted.size()] == '_' || label[wanted.size()] == '+');
}

}  // namespace

void check_overrides(const std::vector<std::string>& overrides, const Graph& graph) {
  const auto kinds = operators().names();
  for (const auto& forced : overrides) {
    const auto what = parts_of(forced).first;
    const auto known = [&](const auto& list, const auto& name_of_one) {
      return std::any_of(list.begin(), list.end(), name_of_one);
    };
    if (known(kinds, [&](const auto& kind) { return is_kind(what, kind); }) ||
        known(graph.order(),
              [&](NodeId id) { return is_kind(what, graph.node(id).op.name()); }) ||  // libraries'
        known(graph.sources, [&](const Source& s) { return s.name == what; }))
      continue;
    std::vector<std::string> names(kinds.begin(), kinds.end());
    for (const auto& s : graph.sources) names.push_back(s.name);
    fail(ErrorCode::bad_option, "force \"{}\": \"{}\" is neither a layer nor a kind of operator{}", forced,
         what, did_you_mean(what, names));
  }
}

KernelOverrides::KernelOverrides(const std::vector<std::string>& overrides, const Graph& graph) {
  for (const auto& forced : overrides) {
    const auto [what, label] = parts_of(forced);
    bool layer = false, kind = false;
    for (const auto id : graph.order()) {
      const auto& node = graph.node(id);
      layer = layer || has_layer(graph, node, id, what);
      kind = kind || is_kind(what, node.op.name());
    }
    if (layer || kind) overrides_.push_back({what, label, layer});
  }
}

const KernelOverrides::Override* KernelOverrides::override_for(const Graph& graph, NodeId id) const {
  const Override* found = nullptr;
  const auto& node = graph.node(id);
  for (const auto& forced : overrides_)
    if (forced.layer ? has_layer(graph, node, id, forced.what)
                     : is_kind(forced.what, node.op.name()) && (!found || !found->layer))
      found = &forced;
  return found;
}

bool KernelOverrides::is_offered(const Override& forced, const Answers& answers) {
  return std::ranges::any_of(answers.offers, [&](const Offer& o) { return fits(o.label, forced.label); });
}

/// True if the parts of the layer's node may have the kernel: they are asked after the node is decomposed.
bool KernelOverrides::may_be_in_parts(const Override& forced, const Node& node, const Answers& answers) {
  return forced.layer && !is_offered(forced, answers) &&
         std::ranges::any_of(answers.offers, [&](const Offer& o) { return decomposes(node, o); });
}

void KernelOverrides::apply(const NodeView& v, Answers& answers) const {
  const auto* forced = override_for(v.graph(), v.id());
  if (!forced) return;
  answers.forced = forced->what + "=" + forced->label;
  const bool any = is_offered(*forced, answers), parts = may_be_in_parts(*forced, v.node(), answers);
  if (!any && !parts) answers.forced += ", which no kernel has there";
  for (auto& o : answers.offers)
    o.unwanted = any ? !fits(o.label, forced->label) : parts && !decomposes(v.node(), o);
}

void KernelOverrides::check(const Graph& graph, const std::map<NodeId, Answers>& answers) const {
  if (overrides_.empty()) return;
  std::set<const Override*> taken;
  std::map<const Override*, std::set<std::string>> offered;
  for (const auto& [id, a] : answers) {
    const auto* forced = override_for(graph, id);
    if (!forced || !forced->layer) continue;
    if (is_offered(*forced, a) || may_be_in_parts(*forced, graph.node(id), a)) taken.insert(forced);
    for (const auto& o : a.offers) offered[forced].insert(o.label);
  }
  for (const auto& [forced, labels] : offered)
    if (!taken.contains(forced))
      fail(ErrorCode::bad_option, "force \"{}={}\": the kernels for it are {}", forced->what, forced->label,
           fmt::join(labels, ", "));
}

}  // namespace lamina
