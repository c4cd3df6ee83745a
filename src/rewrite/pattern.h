#pragma once
/// The words that patterns are made of. A pattern is a small tree: the root describes a node, its inputs
/// describe the values that the node reads. Every word is also the handle by which a rule asks what was
/// found: match.value(word).
///
///   auto w = constant(), s = constant();
///   auto conv = is<Convolution>(any(), w).used_once();
///   auto root = is<Multiply>(conv, s).any_order();
///
/// Kinds (operators, literal numbers) must fit, else there is no match and nothing is said. Guards
/// (constant(), used_once()) are looked at after all kinds fit; a guard that fails is a refusal with
/// a sentence of its own.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "graph/graph.h"

namespace lamina {

class FoldBudget;
class Match;
struct Machine;
struct Word;

/// Decides from the node and what it reads whether it is of some kind.
using NodeTest = std::function<bool(const Graph&, const Node&)>;

class Pattern {
 public:
  explicit Pattern(std::shared_ptr<Word> word) : word_(std::move(word)) {}
  /// Guard: nothing but the matched reader reads the node's result; being a result of the graph counts as a
  /// reader.
  Pattern used_once() const;
  /// The two inputs may come in either order.
  Pattern any_order() const;
  /// Narrows the kind of a node: others are no match.
  Pattern that(NodeTest fits) const;
  /// Narrows the kind of a value: others are no match.
  Pattern only_if(std::function<bool(const Graph&, ValueId)> fits) const;
  const Word& word() const { return *word_; }

 private:
  std::shared_ptr<Word> word_;
};

using Patterns = std::vector<Pattern>;

Pattern any();            ///< any value
Pattern constant();       ///< guard: a constant
Pattern constant_only();  ///< a constant; other values are no match
Pattern variable();       ///< a value that is not a constant; constants are no match
/// A constant with one element, `number` to one part in 100000.
Pattern number(double number);
Pattern either(Patterns alternatives);
/// Zero or more nodes, each reading the next one's result by input 0, down to `end`. The shortest way is
/// tried first.
Pattern chain(Pattern link, Pattern end);
/// A node of some kind. `noun` names the kind in sentences. Inputs beyond those listed are not looked at.
Pattern node(std::string noun, NodeTest fits, Patterns inputs);
/// A node whose operator has one of these traits.
Pattern with_trait(Trait trait, std::string noun, Patterns inputs);
inline Pattern unary_elementwise(Pattern x) {
  return with_trait(Trait::unary_elementwise, "activation", {std::move(x)});
}
inline Pattern elementwise(Patterns inputs) {
  return with_trait(Trait::elementwise, "element-wise operator", std::move(inputs));
}

/// A node with one of these operators.
template <class... Ops, class... Inputs>
requires(sizeof...(Ops) > 0) Pattern is(Inputs... inputs) {
  std::string noun;
  ((noun += (noun.empty() ? "" : " or ") + std::string(Ops::info.name)), ...);
  return node(std::move(noun), [](const Graph&, const Node& n) { return (n.op.is<Ops>() || ...); },
              {inputs...});
}

struct Word {
  enum class Kind { any, constant, number, node, either, chain };
  Kind kind = Kind::any;
  std::string noun;
  double number = 0;
  NodeTest fits;
  std::function<bool(const Graph&, ValueId)> fits_value;
  Patterns parts;  ///< inputs of a node; alternatives; link and end of a chain
  bool any_order = false, used_once = false;
};

/// Values that stay as they are, and why.
using KeptValues = std::unordered_map<ValueId, std::string>;

/// Where the words of a pattern were found.
class Match {
 public:
  Match(const Graph& graph, NodeId root) : graph_(graph), root_(root) {}

  const Graph& graph() const { return graph_; }
  NodeId root() const { return root_; }
  const Node& root_node() const { return graph_.node(root_); }

  bool has(const Pattern& word) const { return find(word.word()) != nullptr; }
  ValueId value(const Pattern& word) const;  ///< invalid when the input is absent
  const TensorType& type(const Pattern& word) const { return graph_.type(value(word)); }
  const Shape& shape(const Pattern& word) const { return type(word).shape; }
  const Tensor& tensor(const Pattern& word) const;  ///< of a constant
  NodeId id(const Pattern& word) const;             ///< of a node
  const Node& node(const Pattern& word) const { return graph_.node(id(word)); }
  template <class T>
  const T& op(const Pattern& word) const {
    const T* op = node(word).op.as<T>();
    LAMINA_CHECK(op, "{} is no {}", graph_.label(id(word)), T::info.name);
    return *op;
  }
  /// Nodes of a chain, from the reader down.
  const std::vector<NodeId>& links(const Pattern& chain) const;
  /// What a person calls it, in quotes: the node's label or the value's name.
  std::string label(const Pattern& word) const { return label(value(word)); }
  std::string label(ValueId value) const;
  /// All nodes that words stand for, the root first.
  std::vector<NodeId> nodes() const;
  /// The user wants the node to stay as it is.
  bool is_exempt(NodeId node) const { return exempt && exempt(node); }
  /// Why rules that round must leave the value alone; null: they need not.
  const std::string* why_kept(ValueId value) const {
    if (!kept) return nullptr;
    const auto it = kept->find(value);
    return it == kept->end() ? nullptr : &it->second;
  }

  std::function<bool(NodeId)> exempt;
  const KeptValues* kept = nullptr;
  FoldBudget* folding = nullptr;     ///< what evaluating constants may still cost; null: anything
  const Machine* machine = nullptr;  ///< machine that the rewriting is for; null: any
  bool bf16 = false;                 ///< products are going to be bf16
  bool integers = false;             ///< RewriteOptions::integers
  bool for_file = false;             ///< RewriteOptions::for_file
  bool stored = false;               ///< weights of few bits stay so in this set
  const std::function<Tensor(const Tensor&)>* narrowed = nullptr;  ///< constants as bf16, or null

 private:
  friend class Matcher;
  struct Bound {
    const Word* word = nullptr;
    ValueId value;
    NodeId node;
    std::vector<NodeId> links;
  };
  const Bound* find(const Word& word) const;
  const Bound& at(const Pattern& word) const;

  const Graph& graph_;
  NodeId root_;
  std::vector<Bound> bound_;
};

/// True when the pattern's root word may stand for the node: cheap, looks at nothing else.
bool root_fits(const Graph& graph, const Pattern& pattern, const Node& node);
/// Calls `accept` for every way in which the kinds fit, until it returns true. False: the inputs of too many
/// nodes may come in either order to try all ways.
bool for_each_match(const Graph& graph, NodeId root, const Pattern& pattern,
                    const std::function<bool(Match&)>& accept);
/// Looks at the guards of all words that were bound.
Verdict check_guards(const Match& match, const Pattern& pattern);
/// Longest way from the root to a leaf, in nodes (a chain counts as 4).
int depth_of(const Pattern& pattern);

/// Verdict of used_once() for one value that `reader` reads.
Verdict read_only_by(const Graph& graph, ValueId value, NodeId reader);

}  // namespace lamina
