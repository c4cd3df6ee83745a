#include "rewrite/exemptions.h"

#include <re2/re2.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/error.h"

namespace lamina {

struct Exemptions::Pattern {
  std::string text;
  std::unique_ptr<re2::RE2> expression;

  bool fits(const std::string& name) const {
    return !name.empty() && (name == text || re2::RE2::FullMatch(name, *expression));
  }
};

Exemptions::Exemptions(std::vector<std::string> patterns, std::string_view option) {
  re2::RE2::Options options(re2::RE2::Latin1);  // names are bytes: files need not hold UTF-8
  options.set_log_errors(false);
  for (auto& text : patterns) {
    auto expression = std::make_unique<re2::RE2>(text, options);
    if (!expression->ok())
      fail(ErrorCode::bad_option, "{} \"{}\": no regular expression: {} (\\Q...\\E quotes a name)", option,
           text, expression->error());
    patterns_.push_back({std::move(text), std::move(expression)});
  }
}

Exemptions::~Exemptions() = default;

bool Exemptions::empty() const { return patterns_.empty(); }

bool Exemptions::matches(const std::string& name) const {
  const auto [it, added] = known_.try_emplace(name, false);
  if (added)
    it->second = std::any_of(patterns_.begin(), patterns_.end(), [&](auto& p) { return p.fits(name); });
  return it->second;
}

bool Exemptions::covers(const Node& node, const std::vector<Source>& sources) const {
  if (patterns_.empty()) return false;
  return matches(node.name) || std::any_of(node.sources.begin(), node.sources.end(), [&](SourceId s) {
           return s.index < sources.size() && matches(sources[s.index].name);
         });
}

namespace {

constexpr std::string_view kBefore = "(?s:.*)(?:", kBehind = ")(?s:.*)";

void each_node(const Graph& graph, const std::function<void(const Graph&, NodeId)>& see) {
  for (const auto id : graph.order()) {
    see(graph, id);
    for (const auto& body : graph.node(id).bodies) each_node(body, see);
  }
}

}  // namespace

std::vector<std::string> Exemptions::idle(const Graph& graph) const {
  if (patterns_.empty()) return {};
  std::vector<const Pattern*> unused;
  for (const auto& p : patterns_) unused.push_back(&p);
  const auto see = [&](const std::string& name) {
    std::erase_if(unused, [&](const Pattern* p) { return p->fits(name); });
  };
  each_node(graph, [&](const Graph& g, NodeId id) { see(g.node(id).name); });
  for (const auto& source : graph.sources) see(source.name);
  std::vector<std::string> out;
  for (const auto* p : unused) out.push_back(p->text);
  return out;
}

std::vector<std::string> exempt_names(const Exemptions& exempt, const Graph& graph) {
  std::vector<std::string> out;
  if (exempt.empty()) return out;
  std::set<std::string> seen;  // nodes of one layer have one name
  each_node(graph, [&](const Graph& g, NodeId id) {
    if (!exempt.covers(g.node(id), graph.sources)) return;
    if (auto label = g.label(id); seen.insert(label).second) out.push_back(std::move(label));
  });
  return out;
}

std::string in_any_part(const std::string& expression) {
  return std::string(kBefore) + expression + std::string(kBehind);
}

std::string as_said(const std::string& pattern) {
  const auto around = kBefore.size() + kBehind.size();
  if (pattern.size() < around || !pattern.starts_with(kBefore) || !pattern.ends_with(kBehind)) return pattern;
  return pattern.substr(kBefore.size(), pattern.size() - around);
}

}  // namespace lamina
