#pragma once
/// A rule: what it is, its pattern, when it holds, and what it makes. Only a Rewrite changes the graph.
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "rewrite/pattern.h"

namespace lamina {

class Rewrite;
struct RewriteOptions;

/// Rules run set after set. Tidying rules run in every set from their own on. Libraries have sets of their
/// own between lamina's: their rules are done before lamina's next ones begin.
enum class RuleSet : std::uint8_t {
  as_read,    ///< before any other
  normalize,  ///< after reading
  folded,     ///< of libraries: constants are folded, exporters' idioms not yet recognised
  portable,   ///< leaves only operators that files can hold
  quantised,  ///< of libraries: quantise steps are still operators
  levels,     ///< quantise steps before products round to integers
  integers,   ///< these multiply them
  unfused,    ///< of libraries: activations stand behind what they will be fused into
  runtime,    ///< compute nodes with epilogues
  fused,      ///< of libraries: what no compute node has taken by then
  chains,     ///< the same, element-wise
  precision,  ///< types of what is stored: 8-bit integers, bf16 where that is asked for; not in bodies
};
std::string_view name_of(RuleSet set);

/// What a condition found out, for what is made of it; or why the rule does not hold.
template <class T>
class Found {
 public:
  Found(T value) : value_(std::move(value)) {}              // NOLINT: as std::optional
  Found(Verdict refusal) : verdict_(std::move(refusal)) {}  // NOLINT
  /// The rule has nothing to do there: as if its pattern did not fit.
  Found(std::nullopt_t) : verdict_(Verdict::no("")) {}  // NOLINT
  const Verdict& verdict() const { return verdict_; }
  explicit operator bool() const { return value_.has_value(); }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return &*value_; }
  T take() && { return std::move(*value_); }

 private:
  std::optional<T> value_;
  Verdict verdict_ = Verdict::yes();
};

/// The rule does not apply, as if the pattern did not match.
inline Verdict nothing_to_do() { return Verdict::no(""); }

/// Makes what replaces a match; holds what the condition has found there. Lives no longer than the rule.
using Making = std::function<void(Rewrite&)>;

template <class Condition>
struct ConditionalRule;

struct Rule {
  std::string name;
  std::string doc;  ///< one line
  RuleSet set = RuleSet::normalize;
  Pattern pattern = any();
  std::function<Found<Making>(const Match&)> bind;
  bool tidying = false;
  bool patient = false;                    ///< waits until no other rule of its set fires
  bool only_refuses = false;               ///< says why something is not done, and does nothing
  bool RewriteOptions::*option = nullptr;  ///< without which it does not run; null: it always does
  std::string library = {};                ///< whose it is; empty: lamina's own

  /// `condition` of a Match gives a Verdict, or Found<T>: what is made gets the T then.
  template <class Condition>
  ConditionalRule<Condition> when(Condition condition) && {
    return {std::move(*this), std::move(condition)};
  }
  Rule make(Making make) && {
    bind = [make = std::move(make)](const Match&) { return Found<Making>(make); };
    return std::move(*this);
  }
  /// `reason` of a Match gives why something is not done there; empty: nothing is to be said.
  Rule refuse(std::function<std::string(const Match&)> reason) && {
    bind = [reason = std::move(reason)](const Match& m) -> Found<Making> {
      return Verdict::no("{}", reason(m));
    };
    only_refuses = true;
    return std::move(*this);
  }
  Rule in_later_sets_too() && {
    tidying = true;
    return std::move(*this);
  }
  Rule when_others_are_done() && {
    patient = true;
    return std::move(*this);
  }
  /// What the rule does is asked for by that option.
  Rule only_with(bool RewriteOptions::*asked) && {
    option = asked;
    return std::move(*this);
  }
  bool runs_in(RuleSet other) const { return set == other || (tidying && set < other); }
};

/// A rule that does not say yet what it makes.
template <class Condition>
struct ConditionalRule {
  Rule rule;
  Condition condition;

  template <class Make>
  Rule make(Make make) && {
    rule.bind = [when = std::move(condition), make = std::move(make)](const Match& match) -> Found<Making> {
      auto found = when(match);
      if constexpr (std::is_same_v<decltype(found), Verdict>) {
        if (!found) return found;
        return Making(std::cref(make));
      } else {
        if (!found) return found.verdict();
        return Making([&make, what = std::move(found).take()](Rewrite& r) { make(r, what); });
      }
    };
    return std::move(rule);
  }
};

inline Rule rule(std::string name, std::string doc, RuleSet set, Pattern pattern) {
  return {std::move(name), std::move(doc), set, std::move(pattern), {}, false};
}

/// What a rule does once its pattern and condition hold. The root's outputs are replaced; matched nodes that
/// nobody reads any more go, and the new nodes take over their sources. Names of replaced values live on.
/// A rule that rewrites more than what leads to its root may replace other nodes' outputs as well.
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
  /// A new node in the place of an old one: it has its name, and stands for what that stood for and for
  /// nothing else. The old one goes when nobody reads it any more.
  ValueId add_for(NodeId old, Op op, std::vector<ValueId> inputs);
  /// A new node that stands for the root alone; it is called as the root with the word behind it.
  ValueId add_beside(std::string_view word, Op op, std::vector<ValueId> inputs);
  /// Sources that a new node has besides those of the replaced nodes.
  void add_sources(NodeId node, const std::vector<SourceId>& sources);

  /// What a new value is called: that of the root, with the word behind it.
  void name_value(ValueId value, std::string_view word);

  /// Whoever read this output of the root reads `to` instead.
  void replace(std::size_t output, ValueId to);
  void replace(ValueId to) { replace(0, to); }
  /// Whoever read the only output of another node reads `to` instead.
  void replace_other(NodeId node, ValueId to);
  /// The root goes; nothing may read it.
  void remove() { removed_ = true; }
  /// Another old node that the new ones stand for: it goes when nobody reads it any more.
  void absorb(NodeId node) { absorbed_.push_back(node); }
  /// An old node now also stands for what is replaced.
  void stands_for_root(NodeId node) { heir_ = node; }
  /// What became of it, for the ledger ("folded into constants").
  void note(std::string text) { note_ = std::move(text); }

  // What has been said so far.
  std::vector<NodeId> added() const;  ///< all new nodes
  const std::vector<NodeId>& absorbed() const { return absorbed_; }
  NodeId heir() const { return heir_; }
  struct Replaced {
    ValueId from, to;  ///< an output of an old node, and what is read instead
  };
  const std::vector<Replaced>& replaced() const { return replaced_; }

 private:
  friend class Driver;
  const Match& match_;
  Graph& graph_;
  std::string name_;
  bool removed_ = false;
  NodeId heir_;
  std::string note_;
  struct Successor {
    NodeId node;
    std::vector<SourceId> sources;
  };
  std::vector<NodeId> added_, absorbed_;  // added_: but successors
  std::vector<Successor> successors_;
  std::vector<Replaced> replaced_;
};

}  // namespace lamina
