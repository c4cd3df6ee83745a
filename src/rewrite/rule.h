#pragma once
/// A rule: what it is, its pattern, when it holds, and what it makes. Only a Rewrite changes the graph.
#include <any>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "rewrite/pattern.h"

namespace lamina {

class Rewrite;

/// Rules run set after set. Tidying rules run in every set from their own on.
enum class RuleSet : std::uint8_t {
  normalize,  ///< after reading
  portable,   ///< leaves only operators that files can hold
  precision,  ///< quantise steps to integers
  runtime,    ///< compute nodes with epilogues
  chains,     ///< what no compute node has taken by then
};
std::string_view name_of(RuleSet set);

/// What a condition found out, for what is made of it; or why the rule does not hold.
template <class T>
class Found {
 public:
  using Type = T;
  Found(T value) : value_(std::move(value)) {}              // NOLINT: as std::optional
  Found(Verdict refusal) : verdict_(std::move(refusal)) {}  // NOLINT
  const Verdict& verdict() const { return verdict_; }
  explicit operator bool() const { return value_.has_value(); }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return &*value_; }
  T take() && { return std::move(*value_); }

 private:
  std::optional<T> value_;
  Verdict verdict_ = Verdict::yes();
};

template <class T>
struct FindingRule;

struct Rule {
  std::string name;
  std::string doc;  ///< one line
  RuleSet set = RuleSet::normalize;
  Pattern pattern = any();
  /// `found` is what the action gets.
  std::function<Verdict(const Match&, std::any& found)> condition;
  std::function<void(Rewrite&, const std::any& found)> action;
  bool tidying = false;

  /// `f` of a Match gives a Verdict, or Found<T>: what is made gets the T then.
  template <class F>
  auto when(F f) &&;
  Rule make(std::function<void(Rewrite&)> f) && {
    action = [f = std::move(f)](Rewrite& r, const std::any&) { f(r); };
    return std::move(*this);
  }
  Rule in_later_sets_too() && {
    tidying = true;
    return std::move(*this);
  }
  bool runs_in(RuleSet other) const { return set == other || (tidying && set < other); }
};

/// A rule whose condition has found a T.
template <class T>
struct FindingRule {
  Rule rule;
  Rule make(std::function<void(Rewrite&, const T&)> f) && {
    rule.action = [f = std::move(f)](Rewrite& r, const std::any& found) {
      f(r, std::any_cast<const T&>(found));
    };
    return std::move(rule);
  }
};

template <class F>
auto Rule::when(F f) && {
  using Result = std::invoke_result_t<F, const Match&>;
  if constexpr (std::is_same_v<Result, Verdict>) {
    condition = [f = std::move(f)](const Match& m, std::any&) { return f(m); };
    return std::move(*this);
  } else {
    using T = typename Result::Type;
    condition = [f = std::move(f)](const Match& m, std::any& found) {
      Result result = f(m);
      auto verdict = result.verdict();
      if (result) found = std::move(result).take();
      return verdict;
    };
    return FindingRule<T>{std::move(*this)};
  }
}

inline Rule rule(std::string name, std::string doc, RuleSet set, Pattern pattern) {
  return {std::move(name), std::move(doc), set, std::move(pattern), {}, {}, false};
}

/// What a rule does once its pattern and condition hold. The root's outputs are replaced; matched nodes that
/// nobody reads any more go, and the new nodes take over their sources. Names of replaced values live on.
class Rewrite {
 public:
  Rewrite(Graph& graph, const Match& match) : match_(match), graph_(graph) {}

  const Match& match() const { return match_; }
  const Graph& graph() const { return graph_; }

  ValueId constant(Tensor data, const std::string& name = {});
  /// A new node; it is called as the last named_after() says, else as the root.
  NodeId add_node(Op op, std::vector<ValueId> inputs, int outputs = -1, std::vector<Graph> bodies = {});
  ValueId add(Op op, std::vector<ValueId> inputs, std::vector<Graph> bodies = {});
  void named_after_text(std::string name) { name_ = std::move(name); }
  void named_after(NodeId node) { name_ = graph_.node(node).name; }
  void named_after(const Pattern& word) { named_after(match_.id(word)); }
  /// Sources that a new node has besides those of the replaced nodes.
  void add_sources(NodeId node, const std::vector<SourceId>& sources);

  /// Whoever read this output of the root reads `to` instead.
  void replace(std::size_t output, ValueId to);
  void replace(ValueId to) { replace(0, to); }
  /// The root goes; nothing may read it.
  void remove() { removed_ = true; }
  /// Another old node that the new ones stand for: it goes when nobody reads it any more.
  void absorb(NodeId node) { absorbed_.push_back(node); }
  /// The user wants the node to stay as it is.
  bool is_exempt(NodeId node) const { return exempt_ && exempt_(node); }
  /// An old node now also stands for what is replaced.
  void stands_for_root(NodeId node) { heir_ = node; }
  /// What became of it, for the ledger ("folded into constants").
  void note(std::string text) { note_ = std::move(text); }
  /// Only before anything was added: the rule does not hold after all.
  void refuse(std::string reason) { refusal_ = std::move(reason); }

 private:
  friend class Driver;
  const Match& match_;
  Graph& graph_;
  std::string name_;
  bool removed_ = false;
  NodeId heir_;
  std::string note_, refusal_;
  std::vector<NodeId> added_, absorbed_;
  std::function<bool(NodeId)> exempt_;
  std::vector<std::pair<std::size_t, ValueId>> replaced_;
};

}  // namespace lamina
