#include "plan/force.h"

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

std::pair<std::string, std::string> parts_of(const std::string& wish) {
  const auto equals = wish.rfind('=');  // names of layers may hold some
  if (equals == std::string::npos || equals == 0 || equals + 1 == wish.size())
    fail(ErrorCode::bad_option, "force \"{}\": wanted NODE=LABEL or OPERATOR=LABEL", wish);
  return {wish.substr(0, equals), wish.substr(equals + 1)};
}

/// The label, or its first words.
bool fits(const std::string& label, const std::string& wanted) {
  return label.starts_with(wanted) &&
         (label.size() == wanted.size() || label[wanted.size()] == '_' || label[wanted.size()] == '+');
}

}  // namespace

void check_wishes(const std::vector<std::string>& wishes, const Graph& graph) {
  const auto kinds = operators().names();
  for (const auto& wish : wishes) {
    const auto what = parts_of(wish).first;
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
    fail(ErrorCode::bad_option, "force \"{}\": \"{}\" is neither a layer nor a kind of operator{}", wish,
         what, did_you_mean(what, names));
  }
}

Force::Force(const std::vector<std::string>& wishes, const Graph& graph) {
  for (const auto& wish : wishes) {
    const auto [what, label] = parts_of(wish);
    bool layer = false, kind = false;
    for (const auto id : graph.order()) {
      const auto& node = graph.node(id);
      layer = layer || has_layer(graph, node, id, what);
      kind = kind || is_kind(what, node.op.name());
    }
    if (layer || kind) wishes_.push_back({what, label, layer});
  }
}

const Force::Wish* Force::wish_for(const Graph& graph, NodeId id) const {
  const Wish* found = nullptr;
  const auto& node = graph.node(id);
  for (const auto& wish : wishes_)
    if (wish.layer ? has_layer(graph, node, id, wish.what)
                   : is_kind(wish.what, node.op.name()) && (!found || !found->layer))
      found = &wish;
  return found;
}

bool Force::is_offered(const Wish& wish, const Answers& answers) {
  return std::ranges::any_of(answers.offers, [&](const Offer& o) { return fits(o.label, wish.label); });
}

/// True if the parts of the layer's node may have the kernel: they are asked after the node is decomposed.
bool Force::may_be_in_parts(const Wish& wish, const Node& node, const Answers& answers) {
  return wish.layer && !is_offered(wish, answers) &&
         std::ranges::any_of(answers.offers, [&](const Offer& o) { return decomposes(node, o); });
}

void Force::apply(const NodeView& v, Answers& answers) const {
  const auto* wish = wish_for(v.graph(), v.id());
  if (!wish) return;
  answers.wish = wish->what + "=" + wish->label;
  const bool any = is_offered(*wish, answers), parts = may_be_in_parts(*wish, v.node(), answers);
  if (!any && !parts) answers.wish += ", which no kernel has there";
  for (auto& o : answers.offers)
    o.unwanted = any ? !fits(o.label, wish->label) : parts && !decomposes(v.node(), o);
}

void Force::check(const Graph& graph, const std::map<NodeId, Answers>& answers) const {
  if (wishes_.empty()) return;
  std::set<const Wish*> taken;
  std::map<const Wish*, std::set<std::string>> offered;
  for (const auto& [id, a] : answers) {
    const auto* wish = wish_for(graph, id);
    if (!wish || !wish->layer) continue;
    if (is_offered(*wish, a) || may_be_in_parts(*wish, graph.node(id), a)) taken.insert(wish);
    for (const auto& o : a.offers) offered[wish].insert(o.label);
  }
  for (const auto& [wish, labels] : offered)
    if (!taken.contains(wish))
      fail(ErrorCode::bad_option, "force \"{}={}\": the kernels for it are {}", wish->what, wish->label,
           fmt::join(labels, ", "));
}

}  // namespace lamina
