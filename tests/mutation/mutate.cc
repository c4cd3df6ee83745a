#include "tests/mutation/mutate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "tests/mutation/text_tree.h"
#include "tests/ops/hostile_values.h"

namespace lamina::testing {
namespace {

constexpr std::size_t kMostOfARole = 48;
constexpr std::size_t kMostParts = 400;  // of a part that is kept

std::size_t size_of(const Tree& tree) {
  std::size_t n = 1;
  for (const auto& c : tree.children) n += size_of(c);
  return n;
}

/// A group and one of its children.
struct Place {
  Tree* parent;
  std::size_t index;
  Tree& tree() const { return parent->children[index]; }
};

void collect(Tree& tree, std::map<std::string, std::vector<Place>>& out) {
  for (std::size_t i = 0; i < tree.children.size(); ++i) {
    out[tree.children[i].role].push_back({&tree, i});
    collect(tree.children[i], out);
  }
}

/// Texts by which the parts of a model find each other.
bool is_wire(std::string_view name) {
  constexpr std::string_view names[] = {"input",
                                        "output",
                                        "bottom",
                                        "top",
                                        "name",
                                        "value",
                                        "@from-layer",
                                        "@to-layer",
                                        "@from-port",
                                        "@to-port",
                                        "@id",
                                        "@internal_layer_id",
                                        "@external_port_id",
                                        "id"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

class Mutator {
 public:
  Mutator(TreeModel& model, const PartBank& bank, SplitMix& random)
      : model_(model), bank_(bank), random_(random) {}

  void change() {
    places_.clear();
    collect(model_.tree, places_);
    if (places_.empty()) return;
    const auto what = below(100);
    if (what < 24)
      take_other_value();
    else if (what < 42)
      tweak_value();
    else if (what < 58)
      rewire();
    else if (what < 64)
      swap_siblings();
    else if (what < 71)
      remove();
    else if (what < 77)
      duplicate();
    else if (what < 84)
      insert_foreign();
    else if (what < 90)
      replace_by_foreign();
    else if (what < 94)
      swap_within();
    else
      other_version();
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_.below(n)); }
  bool percent(std::size_t chance) { return below(100) < chance; }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }

  /// First a role, then a place: data and other things that come often shall not be all that is changed.
  Place* pick(const std::function<bool(const Tree&)>& fits) {
    for (int tries = 0; tries < 20; ++tries) {
      auto it = places_.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(below(places_.size())));
      auto& place = it->second[below(it->second.size())];
      if (fits(place.tree())) return &place;
    }
    return nullptr;
  }

  const Tree* other_of(const std::string& role) {
    if (percent(40)) return &one_of(places_.at(role)).tree();
    return bank_.any(role, random_);
  }

  void take_other_value() {
    auto* place = pick([](const Tree& t) { return t.is_leaf() && t.kind != Tree::Kind::bytes; });
    if (!place) return;
    if (const auto* other = other_of(place->tree().role)) {
      const Tree copy = *other;
      place->tree() = copy;
    }
  }

  std::int64_t other_integer(std::int64_t was) {
    switch (below(6)) {
      case 0:
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(was) + 1);
      case 1:
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(was) - 1);
      case 2:
        return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(was));
      case 3:
        return static_cast<std::int64_t>(below(5));
      case 4:
        return static_cast<std::int64_t>(below(20)) - 4;
      default:
        return one_of(hostile_integers());
    }
  }

  std::string other_word(const std::string& was) {
    constexpr const char* words[] = {"",     "0",   "1",    "-1",         "true",  "false",
                                     "f32",  "i64", "u8",   "same_upper", "valid", "nan",
                                     "1e30", "?",   "NCHW", "edge",       "SAME",  "2..5"};
    char* end = nullptr;
    const auto integer = std::strtoll(was.c_str(), &end, 10);
    if (!was.empty() && *end == 0) return std::to_string(other_integer(integer));
    const double real = std::strtod(was.c_str(), &end);
    if (!was.empty() && *end == 0) return fmt::format("{}", other_real(real));
    return words[below(std::size(words))];
  }

  double other_real(double was) {
    switch (below(4)) {
      case 0:
        return -was;
      case 1:
        return was * 2;
      case 2:
        return std::round(was * 3) / 2;
      default:
        return one_of(hostile_numbers());
    }
  }

  /// A list of texts with one element changed, removed, or added.
  std::string other_list(const std::string& was) {
    auto items = split(was, ',');
    const auto at = below(items.size());
    switch (below(5)) {
      case 0:
        items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), items[at]);
        break;
      case 2:
        std::swap(items[at], items[below(items.size())]);
        break;
      default:
        items[at] = other_word(items[at]);
    }
    return fmt::format("{}", fmt::join(items, ","));
  }

  void tweak_value() {
    auto* place = pick([](const Tree& t) { return t.is_leaf() && !is_wire(t.name); });
    if (!place) return;
    auto& t = place->tree();
    switch (t.kind) {
      case Tree::Kind::integer:
        t.integer = other_integer(t.integer);
        break;
      case Tree::Kind::real:
        t.real = other_real(t.real);
        break;
      case Tree::Kind::text:
        t.text = t.text.find(',') != std::string::npos ? other_list(t.text)
                 : percent(50)                         ? other_word(t.text)
                                                       : other_list(t.text);
        break;
      case Tree::Kind::word:
        t.text = other_word(t.text);
        if (t.text.empty()) t.text = "0";
        break;
      default:
        if (!t.text.empty())
          t.text[below(t.text.size())] = static_cast<char>(percent(50) ? below(4) : below(256));
    }
  }

  /// A name becomes another name of the model, of whatever role.
  void rewire() {
    const auto wires = [](const Tree& t) { return t.is_leaf() && is_wire(t.name); };
    auto* place = pick(wires);
    const auto* other = pick(wires);
    if (!place || !other || place->tree().kind != other->tree().kind) return;
    auto& t = place->tree();
    if (percent(6)) {
      t.text.clear();
      t.integer = -1;
    } else {
      t.text = std::string(other->tree().text);
      t.integer = other->tree().integer;
    }
  }

  void swap_siblings() {
    auto* place = pick([](const Tree& t) { return t.kind != Tree::Kind::bytes; });
    if (!place) return;
    std::vector<std::size_t> same;
    for (std::size_t i = 0; i < place->parent->children.size(); ++i)
      if (place->parent->children[i].name == place->tree().name) same.push_back(i);
    std::swap(place->parent->children[one_of(same)], place->tree());
  }

  void remove() {
    if (auto* place = pick([](const Tree&) { return true; }))
      place->parent->children.erase(place->parent->children.begin() +
                                    static_cast<std::ptrdiff_t>(place->index));
  }

  void duplicate() {
    auto* place = pick([](const Tree&) { return true; });
    if (!place) return;
    auto copy = place->tree();
    if (percent(60)) rename_results(copy);
    auto& list = place->parent->children;
    list.insert(
        list.begin() + static_cast<std::ptrdiff_t>(percent(50) ? place->index : below(list.size() + 1)),
        std::move(copy));
  }

  /// Gives the results of a doubled node names of their own.
  void rename_results(Tree& part) {
    for (auto& c : part.children)
      if (c.kind == Tree::Kind::text && (c.name == "output" || c.name == "top" || c.name == "name"))
        c.text += "_again";
  }

  /// What comes from another model mostly reads what there is in this one.
  void settle(Tree& part) {
    for (auto& c : part.children) {
      if (!c.is_leaf()) settle(c);
      if (!c.is_leaf() || !is_wire(c.name) || percent(20)) continue;
      const auto it = places_.find(c.role);
      if (it == places_.end() || c.name == "output" || c.name == "top" || c.name == "name") continue;
      const auto& other = one_of(it->second).tree();
      c.text = std::string(other.text);
      c.integer = other.integer;
    }
  }

  void insert_foreign() {
    auto* place = pick([](const Tree& t) { return t.kind != Tree::Kind::bytes; });
    if (!place) return;
    const auto* foreign = bank_.any(place->tree().role, random_);
    if (!foreign) return;
    Tree copy = *foreign;
    settle(copy);
    auto& list = place->parent->children;
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(below(list.size() + 1)), std::move(copy));
  }

  void replace_by_foreign() {
    auto* place = pick([](const Tree& t) { return !t.is_leaf(); });
    if (!place) return;
    const auto* foreign = bank_.any(place->tree().role, random_);
    if (!foreign) return;
    Tree copy = *foreign;
    settle(copy);
    if (percent(70)) keep_results(place->tree(), copy);
    place->tree() = std::move(copy);
  }

  /// The new node gives what the old one gave, so that others still read it.
  static void keep_results(const Tree& old, Tree& part) {
    for (const auto* name : {"output", "top", "name", "@id"}) {
      std::vector<std::string> texts;
      for (const auto& c : old.children)
        if (c.name == name) texts.push_back(c.text);
      std::size_t next = 0;
      for (auto& c : part.children)
        if (c.name == name && next < texts.size()) c.text = texts[next++];
    }
  }

  void swap_within() {
    auto* place = pick([](const Tree& t) { return t.kind != Tree::Kind::bytes; });
    if (!place) return;
    const auto& all = places_.at(place->tree().role);
    const auto& other = one_of(all);
    if (other.parent == place->parent && other.index == place->index) return;
    // One of them may hold the other (bodies hold nodes): swap copies of what they are only where not.
    const Tree a = place->tree(), b = other.tree();
    if (holds(a, &other.tree(), place->tree()) || holds(b, &place->tree(), other.tree())) return;
    place->tree() = b;
    other.tree() = a;
  }

  static bool holds(const Tree&, const Tree* inner, const Tree& outer) {
    for (const auto& c : outer.children)
      if (&c == inner || holds(c, inner, c)) return true;
    return false;
  }

  void other_version() {
    auto* place = pick([](const Tree& t) {
      return t.is_leaf() && (t.name == "version" || t.name == "@version" || t.name == "ir_version" ||
                             t.name == "producer" || t.name == "data_type" || t.name == "elem_type" ||
                             t.name == "dtype" || t.name == "@element_type" || t.name == "@precision");
    });
    if (!place) return;
    auto& t = place->tree();
    if (t.kind == Tree::Kind::integer)
      t.integer = static_cast<std::int64_t>(below(26));
    else if (t.name == "@version")
      t.text = (t.text.starts_with("opset") ? "opset" : "") + std::to_string(1 + below(16));
    else if (const auto* other = bank_.any(t.role, random_))
      t.text = other->text;
  }

  TreeModel& model_;
  const PartBank& bank_;
  SplitMix& random_;
  std::map<std::string, std::vector<Place>> places_;
};

}  // namespace

void PartBank::add(const Tree& tree) {
  for (const auto& c : tree.children) {
    if (size_of(c) <= kMostParts) {
      auto& list = parts_[c.role];
      const auto n = seen_[c.role]++;
      // An even choice of all that come, the same for the same models.
      SplitMix random(n);
      if (list.size() < kMostOfARole)
        list.push_back(c);
      else if (const auto at = random.below(n + 1); at < kMostOfARole)
        list[at] = c;
    }
    add(c);
  }
}

const Tree* PartBank::any(const std::string& role, SplitMix& random) const {
  const auto it = parts_.find(role);
  return it == parts_.end() ? nullptr : &it->second[random.below(it->second.size())];
}

TreeModel mutated(TreeModel model, const PartBank& bank, SplitMix& random) {
  Mutator mutator(model, bank, random);
  do {
    mutator.change();
  } while (random.below(100) < 45);
  if (random.below(100) < 85) repair_tensors(model);
  return model;
}

}  // namespace lamina::testing
