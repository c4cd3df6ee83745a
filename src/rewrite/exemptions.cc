#include "rewrite/exemptions.h"

#include <re2/re2.h>

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace lamina {

struct Exemptions::Pattern {
  std::string text;
  std::unique_ptr<re2::RE2> expression;

  bool fits(const std::string& name) const {
    return !name.empty() && (name == text || re2::RE2::FullMatch(name, *expression));
  }
};

Exemptions::Exemptions(std::vector<std::string> patterns) {
  re2::RE2::Options options(re2::RE2::Latin1);  // names are bytes: files need not hold UTF-8
  options.set_log_errors(false);
  for (auto& text : patterns) {
    auto expression = std::make_unique<re2::RE2>(text, options);
    if (!expression->ok())
      fail(ErrorCode::bad_option, "exempt \"{}\": no regular expression: {} (\\Q...\\E quotes a name)", text,
           expression->error());
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

void each_name(const Graph& graph, const std::function<void(const std::string&)>& see) {
  for (std::uint32_t i = 0; i < graph.node_slots(); ++i) {
    const Node& node = graph.node({i});
    if (node.erased()) continue;
    see(node.name);
    for (const auto& body : node.bodies) each_name(body, see);
  }
}

}  // namespace

std::vector<std::string> Exemptions::idle(const Graph& graph) const {
  std::vector<const Pattern*> unused;
  for (const auto& p : patterns_) unused.push_back(&p);
  const auto see = [&](const std::string& name) {
    std::erase_if(unused, [&](const Pattern* p) { return p->fits(name); });
  };
  each_name(graph, see);
  for (const auto& source : graph.sources) see(source.name);
  std::vector<std::string> out;
  for (const auto* p : unused) out.push_back(p->text);
  return out;
}

}  // namespace lamina
