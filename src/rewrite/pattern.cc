#include "rewrite/pattern.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "ops/eval.h"

namespace lamina {
namespace {

constexpr std::size_t kMostTurns = 1 << 14;  // of the inputs of nodes, at one root
constexpr std::size_t kMostLinks = 64;       // of a chain: each root looks along its own

std::shared_ptr<Word> new_word(Word::Kind kind, Patterns parts = {}) {
  auto word = std::make_shared<Word>();
  word->kind = kind;
  word->parts = std::move(parts);
  return word;
}

bool holds(const Tensor& t, double wanted) {
  if (t.size() != 1) return false;
  return std::fabs(to_doubles(t)[0] - wanted) <= 1e-5 * std::fabs(wanted);
}

/// "Convolution" in a sentence: "convolution"; names of several words stay as they are ("MatMul").
std::string in_sentence(std::string noun) {
  const auto capitals =
      std::count_if(noun.begin(), noun.end(), [](unsigned char c) { return std::isupper(c); });
  if (capitals == 1 && noun.find(' ') == std::string::npos)
    noun[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(noun[0])));
  return noun;
}

}  // namespace

Pattern Pattern::used_once() const {
  word_->used_once = true;
  return *this;
}

Pattern Pattern::any_order() const {
  LAMINA_CHECK(word_->parts.size() == 2, "any_order() of {} inputs", word_->parts.size());
  word_->any_order = true;
  return *this;
}

Pattern Pattern::that(NodeTest fits) const {
  word_->fits = [first = word_->fits, second = std::move(fits)](const Graph& g, const Node& n) {
    return first(g, n) && second(g, n);
  };
  return *this;
}

Pattern Pattern::only_if(std::function<bool(const Graph&, ValueId)> fits) const {
  word_->fits_value = std::move(fits);
  return *this;
}

Pattern any() { return Pattern(new_word(Word::Kind::any)); }
Pattern constant() { return Pattern(new_word(Word::Kind::constant)); }
Pattern constant_only() {
  return any().only_if([](const Graph& g, ValueId v) { return g.constant(v) != nullptr; });
}
Pattern variable() {
  return any().only_if([](const Graph& g, ValueId v) { return g.constant(v) == nullptr; });
}
Pattern either(Patterns alternatives) {
  return Pattern(new_word(Word::Kind::either, std::move(alternatives)));
}
Pattern chain(Pattern link, Pattern end) {
  return Pattern(new_word(Word::Kind::chain, {std::move(link), std::move(end)}));
}

Pattern number(double wanted) {
  auto word = new_word(Word::Kind::number);
  word->number = wanted;
  return Pattern(std::move(word));
}

Pattern node(std::string noun, NodeTest fits, Patterns inputs) {
  auto word = new_word(Word::Kind::node, std::move(inputs));
  word->noun = std::move(noun);
  word->fits = std::move(fits);
  return Pattern(std::move(word));
}

Pattern with_trait(Trait trait, std::string noun, Patterns inputs) {
  return node(
      std::move(noun), [trait](const Graph&, const Node& n) { return n.op.has(trait); }, std::move(inputs));
}

const Match::Bound* Match::find(const Word& word) const {
  for (const auto& b : bound_)
    if (b.word == &word) return &b;
  return nullptr;
}

const Match::Bound& Match::at(const Pattern& word) const {
  const auto* b = find(word.word());
  LAMINA_CHECK(b, "the pattern's word was not matched");
  return *b;
}

ValueId Match::value(const Pattern& word) const { return at(word).value; }

const Tensor& Match::tensor(const Pattern& word) const {
  const auto* t = graph_.constant(value(word));
  LAMINA_CHECK(t, "{} is not a constant", label(word));
  return *t;
}

NodeId Match::id(const Pattern& word) const {
  const auto& b = at(word);
  const auto n = b.node.valid() ? b.node : graph_.producer(b.value);  // an either() is bound as a value
  LAMINA_CHECK(n.valid(), "{} is not a node", label(word));
  return n;
}

const std::vector<NodeId>& Match::links(const Pattern& chain) const { return at(chain).links; }

std::string Match::label(ValueId value) const {
  if (!value.valid()) return "an absent input";
  const auto p = graph_.producer(value);
  return fmt::format(
      "'{}'", p.valid() && !graph_.node(p).name.empty() ? graph_.node(p).name : graph_.value(value).name);
}

std::vector<NodeId> Match::nodes() const {
  std::vector<NodeId> out{root_};
  const auto add = [&](NodeId n) {
    if (n.valid() && std::find(out.begin(), out.end(), n) == out.end()) out.push_back(n);
  };
  for (const auto& b : bound_) {
    add(b.node);
    for (auto n : b.links) add(n);
  }
  return out;
}

/// Finds all ways in which a pattern's kinds fit; `next` is what remains to be matched.
class Matcher {
 public:
  using Next = std::function<bool()>;
  Matcher(const Graph& graph, Match& match) : graph_(graph), match_(match) {}

  bool node(const Word& word, NodeId id, const Next& next) {
    const Node& n = graph_.node(id);
    if (word.kind == Word::Kind::either) {
      for (const auto& p : word.parts)
        if (node(p.word(), id, next)) return true;
      return false;
    }
    if (word.kind != Word::Kind::node || !word.fits(graph_, n) || n.inputs.size() < word.parts.size())
      return false;
    bind({&word, n.outputs.empty() ? ValueId{} : n.outputs[0], id, {}});
    const bool done = inputs(word, n, 0, false, next) || (turns(word, n) && inputs(word, n, 0, true, next));
    if (!done) match_.bound_.pop_back();
    return done;
  }

  bool tried_all() const { return turns_ <= kMostTurns; }

 private:
  /// True if the other order of the inputs is a different one, and the limit of orders is not reached.
  bool turns(const Word& word, const Node& n) {
    return word.any_order && n.inputs[0] != n.inputs[1] && ++turns_ <= kMostTurns;
  }

  bool inputs(const Word& word, const Node& n, std::size_t i, bool swapped, const Next& next) {
    if (i == word.parts.size()) return next();
    const auto slot = swapped ? word.parts.size() - 1 - i : i;
    return value(word.parts[i].word(), slot < n.inputs.size() ? n.inputs[slot] : ValueId{},
                 [&] { return inputs(word, n, i + 1, swapped, next); });
  }

  bool value(const Word& word, ValueId v, const Next& next) {
    if (const auto* b = match_.find(word)) return b->value == v && next();
    if (!v.valid()) return false;
    if (word.fits_value && !word.fits_value(graph_, v)) return false;
    switch (word.kind) {
      case Word::Kind::node: {
        const auto p = graph_.producer(v);
        return p.valid() && graph_.value(v).output == 0 && node(word, p, next);
      }
      case Word::Kind::either:
        return bound(word, v, [&] {
          return std::any_of(word.parts.begin(), word.parts.end(),
                             [&](const Pattern& p) { return value(p.word(), v, next); });
        });
      case Word::Kind::chain:
        return chain(word, v, next);
      case Word::Kind::number:
        if (const auto* t = graph_.constant(v); !t || !holds(*t, word.number)) return false;
        return bound(word, v, next);
      default:
        return bound(word, v, next);
    }
  }

  bool chain(const Word& word, ValueId v, const Next& next) {
    const auto& link = word.parts[0].word();
    Match::Bound b{&word, v, {}, {}};
    for (;;) {
      bind(b);
      if (value(word.parts[1].word(), v, next)) return true;
      match_.bound_.pop_back();
      const auto p = graph_.producer(v);
      if (b.links.size() == kMostLinks || !p.valid() || graph_.value(v).output != 0 ||
          !link.fits(graph_, graph_.node(p)) || !graph_.node(p).inputs.at(0).valid())
        return false;
      b.links.push_back(p);
      v = graph_.node(p).inputs[0];
    }
  }

  bool bound(const Word& word, ValueId v, const Next& next) {
    bind({&word, v, {}, {}});
    if (next()) return true;
    match_.bound_.pop_back();
    return false;
  }

  void bind(Match::Bound b) { match_.bound_.push_back(std::move(b)); }

  const Graph& graph_;
  Match& match_;
  std::size_t turns_ = 0;
};

bool root_fits(const Graph& graph, const Pattern& pattern, const Node& node) {
  const Word& word = pattern.word();
  if (word.kind == Word::Kind::either)
    return std::any_of(word.parts.begin(), word.parts.end(),
                       [&](const Pattern& p) { return root_fits(graph, p, node); });
  return word.kind == Word::Kind::node && word.fits(graph, node);
}

bool for_each_match(const Graph& graph, NodeId root, const Pattern& pattern,
                    const std::function<bool(Match&)>& accept) {
  Match match(graph, root);
  Matcher matcher(graph, match);
  return matcher.node(pattern.word(), root, [&] { return accept(match); }) || matcher.tried_all();
}

Verdict read_only_by(const Graph& graph, ValueId value, NodeId reader) {
  if (graph.readers(value) <= 1) return Verdict::yes();
  const auto p = graph.producer(value);
  const auto what = p.valid() ? "the " + in_sentence(graph.node(p).op.name()) + "'s result"
                              : fmt::format("'{}'", graph.value(value).name);
  if (graph.is_result(value))
    return Verdict::no("{} is also the output '{}'", what,
                       graph.results()[graph.value(value).results.front()].name);
  for (const auto& use : graph.value(value).uses)
    if (use.node != reader) return Verdict::no("{} is also read by '{}'", what, graph.label(use.node));
  return Verdict::no("{} is read {} times by '{}'", what, graph.readers(value), graph.label(reader));
}

namespace {

/// Node among the matched ones that reads the value.
NodeId matched_reader(const Match& match, ValueId value) {
  for (auto n : match.nodes())
    for (auto v : match.graph().node(n).inputs)
      if (v == value) return n;
  return match.root();
}

Verdict check_word(const Match& match, const Word& word, const Pattern& pattern) {
  const auto value = match.value(pattern);
  if (word.kind == Word::Kind::constant && !match.graph().constant(value))
    return Verdict::no("{} is not a constant", match.label(value));
  if (word.used_once) {
    if (auto v = read_only_by(match.graph(), value, matched_reader(match, value)); !v) return v;
  }
  return Verdict::yes();
}

/// Words are shared: each is looked at once.
using Seen = std::set<const Word*>;

Verdict check_guards(const Match& match, const Pattern& pattern, Seen& seen) {
  const Word& word = pattern.word();
  if (!seen.insert(&word).second) return Verdict::yes();
  if (match.has(pattern))
    if (auto v = check_word(match, word, pattern); !v) return v;
  for (const auto& p : word.parts)
    if (auto v = check_guards(match, p, seen); !v) return v;
  return Verdict::yes();
}

int depth_of(const Word& word, std::map<const Word*, int>& known) {
  if (const auto it = known.find(&word); it != known.end()) return it->second;
  int below = 0;
  for (const auto& p : word.parts) below = std::max(below, depth_of(p.word(), known));
  const int own = word.kind == Word::Kind::chain ? 4 : word.kind == Word::Kind::node ? 1 : 0;
  return known[&word] = below + own;
}

}  // namespace

Verdict check_guards(const Match& match, const Pattern& pattern) {
  Seen seen;
  return check_guards(match, pattern, seen);
}

int depth_of(const Pattern& pattern) {
  std::map<const Word*, int> known;
  return depth_of(pattern.word(), known);
}

}  // namespace lamina
