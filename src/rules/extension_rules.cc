#include "rules/extension_rules.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include "base/error.h"
#include "extension/attribute_text.h"
#include "extension/border.h"
#include "ops/decompose.h"
#include "ops/eval.h"
#include "rules/rule_text.h"

namespace lamina {
namespace {

using Argument = RuleStatement::Argument;

RuleSet set_of(std::int32_t stage) {
  switch (stage) {
    case LAMINA_BEFORE_FOLD:
      return RuleSet::as_read;
    case LAMINA_AFTER_FOLD:
      return RuleSet::folded;
    case LAMINA_BEFORE_INT8:
      return RuleSet::quantised;
    case LAMINA_BEFORE_FUSING:
      return RuleSet::unfused;
    default:
      return RuleSet::fused;
  }
}

bool same_attribute(const Attribute& a, const Attribute& b) {
  const auto *x = std::get_if<double>(&a), *y = std::get_if<double>(&b);
  if (x && y) return *x == *y || std::fabs(*x - *y) <= 1e-5 * std::fabs(*y);
  return equal_attribute(a, b);
}

/// The attributes of a node as rules see them: lists of windows that are left out say what they mean, and
/// pads that the sizes decide (auto_pad) are none that a text could name.
std::vector<NamedAttribute> attributes_of(const Graph& g, const Node& n) {
  auto all = n.op->attributes();
  const auto& shape = n.inputs.empty() || !n.inputs[0].valid() ? Shape() : g.type(n.inputs[0]).shape;
  const std::size_t axes = shape.ranked() && shape.rank() > 2 ? shape.rank() - 2 : 0;
  const bool by_sizes = std::any_of(all.begin(), all.end(), [](const NamedAttribute& a) {
    const auto* value = a.name == "auto_pad" ? std::get_if<std::string>(&a.value) : nullptr;
    return value && value->starts_with("same");
  });
  for (auto& a : all) {
    auto* const list = std::get_if<Ints>(&a.value);
    const bool pads = a.name == "pads_begin" || a.name == "pads_end";
    if (!list || (!pads && a.name != "strides" && a.name != "dilations")) continue;
    if (pads && by_sizes)
      list->assign(1, -1);
    else if (list->empty())
      list->assign(axes, pads ? 0 : 1);
  }
  return all;
}

std::int64_t whole_number(double value) {
  if (!(std::fabs(value) < 0x1p63) || value != std::trunc(value))
    fail(ErrorCode::bad_file, "{} is no whole number of 64 bits", value);
  return static_cast<std::int64_t>(value);
}

/// The number in that type; throws where it is none of it.
Tensor number_of(ElementType type, double value) {
  const auto number = from_doubles(type, {}, {value});
  if (!is_float(type) && to_doubles(number)[0] != value)
    fail(ErrorCode::bad_file, "{} is no number of {}", value, name_of(type));
  return number;
}

/// The value of a node that does the same; not valid: there is none.
ValueId same_made(const Graph& g, const Op& op, const std::vector<ValueId>& in) {
  for (const auto id : g.order())
    if (const auto& n = g.node(id); n.op == op && n.inputs == in && !op.has(Trait::impure))
      return n.outputs[0];
  return {};
}

/// Sizes of both follow from the same inputs by the same broadcast.
bool broadcast_alike(const Graph& g, ValueId a, ValueId b) {
  const auto x = g.producer(a), y = g.producer(b);
  return x.valid() && y.valid() && g.node(x).op.has(Trait::elementwise) &&
         g.node(y).op.has(Trait::elementwise) && g.node(x).inputs == g.node(y).inputs;
}

/// Each size that is not known gets a name, so that it is seen where it is the same.
TensorType with_names(TensorType type, std::size_t number) {
  for (std::size_t axis = 0; axis < type.shape.rank(); ++axis)
    if (auto& d = type.shape[axis]; !d.known() && d.name().empty())
      d = Dim::named(fmt::format("?{}.{}", number, axis), d.low(), d.high());
  return type;
}

TensorType without_names(TensorType type) {
  for (std::size_t axis = 0; axis < type.shape.rank(); ++axis)
    if (auto& d = type.shape[axis]; d.name().starts_with('?')) d = Dim(d.low(), d.high());
  return type;
}

/// A rule of a library, ready to be tried.
class TextRule {
 public:
  TextRule(std::shared_ptr<const DeclaredRule> declared, std::shared_ptr<const ExtensionSet> extensions)
      : declared_(std::move(declared)),
        extensions_(std::move(extensions)),
        registry_(extensions_->registry()),
        pattern_(parse_rule_text(declared_->pattern)),
        replacement_(parse_rule_text(declared_->replacement)) {
    for (const auto& s : pattern_) add_word(s);
    for (const auto& s : replacement_) check(s);
  }

  Rule rule(const std::shared_ptr<const TextRule>& self) const {
    Rule out = lamina::rule(declared_->name, declared_->doc, set_of(declared_->stage),
                            words_.at(pattern_.back().name));
    out.library = declared_->origin.name;
    out.bind = [self](const Match& match) -> Found<Making> {
      const auto verdict = self->holds(match);
      if (!verdict) return verdict;
      return Making([self](Rewrite& r) { self->make(r); });
    };
    return out;
  }

 private:
  const AnyOp& operator_of(const std::string& word) const {
    if (const auto* op = registry_.find(word)) return *op;
    const auto near = registry_.nearest(word);
    fail(ErrorCode::bad_file, "operator \"{}\" is not known{}", word,
         near.empty() ? "" : fmt::format(", did you mean \"{}\"?", near));
  }

  static const NamedAttribute& attribute_of(const std::vector<NamedAttribute>& all, const AnyOp& op,
                                            const std::string& name) {
    for (const auto& a : all)
      if (a.name == name) return a;
    unknown_attribute(op, name);
  }

  /// The statement as a node of the pattern.
  void add_word(const RuleStatement& s) {
    const auto& op = operator_of(s.op);
    const auto all = op.attributes();
    std::vector<NamedAttribute> wanted;
    for (const auto& [name, text] : s.attributes) {
      const auto value = attribute_like(attribute_of(all, op, name).value, text);
      if (!value) fail(ErrorCode::bad_file, "{}={}: is no value of it", name, text);
      wanted.push_back({name, *value, Owner::openvino});
    }
    Patterns inputs;
    for (const auto& a : s.arguments) inputs.push_back(argument_word(a));
    if (words_.contains(s.name)) fail(ErrorCode::bad_file, "\"{}\" is read before it is made", s.name);
    const auto fits = [word = s.op, wanted](const Graph& g, const Node& n) {
      if (n.op.info().name != word) return false;
      const auto has = attributes_of(g, n);
      return std::all_of(wanted.begin(), wanted.end(), [&](const NamedAttribute& w) {
        return std::any_of(has.begin(), has.end(), [&](const NamedAttribute& a) {
          return a.name == w.name && same_attribute(a.value, w.value);
        });
      });
    };
    const bool either_way = has(op.info().traits, Trait::commutative) && inputs.size() == 2;
    auto made = node(s.op, fits, std::move(inputs));
    words_.insert_or_assign(s.name, either_way ? made.any_order() : made);
  }

  Pattern argument_word(const Argument& a) {
    if (a.kind == Argument::Kind::number) return number(a.number);
    if (a.kind == Argument::Kind::absent)
      fail(ErrorCode::bad_file, "\"_\" is for replacements: a pattern lists the inputs that are there");
    const auto it = words_.find(a.name);
    if (it != words_.end()) return it->second;
    const auto made = a.kind == Argument::Kind::constant ? constant() : any();
    return words_.emplace(a.name, made).first->second;
  }

  void check(const RuleStatement& s) const {
    const auto& op = operator_of(s.op);
    const auto all = op.attributes();
    for (const auto& [name, text] : s.attributes) {
      const auto& like = attribute_of(all, op, name).value;
      if (!text.starts_with('$') && !attribute_like(like, text))
        fail(ErrorCode::bad_file, "{}={}: is no value of it", name, text);
      const auto of = text.substr(1, text.find('.') - 1);
      if (text.starts_with('$') && !words_.contains(of))
        fail(ErrorCode::bad_file, "{}={}: the pattern has no \"{}\"", name, text, of);
    }
    for (const auto& a : s.arguments) {
      if (a.kind != Argument::Kind::name && a.kind != Argument::Kind::constant) continue;
      const bool made = std::any_of(replacement_.begin(), replacement_.end(),
                                    [&](const auto& r) { return &r < &s && r.name == a.name; });
      if (!made && !words_.contains(a.name))
        fail(ErrorCode::bad_file, "the pattern has no value \"{}\"", a.name);
    }
  }

  /// The layers are what the text says and no more; nothing else reads what goes; the replacement can be made
  /// and gives the same type; the library accepts it.
  Verdict holds(const Match& m) const {
    const Graph& g = m.graph();
    const auto nodes = m.nodes();
    for (const auto& s : pattern_) {
      const auto id = m.id(words_.at(s.name));
      const auto& made = g.node(id);
      const bool root = &s == &pattern_.back();
      const auto& listed = s.arguments;
      if (epilogue(made)) return Verdict::no("'{}' is {} by now", g.label(id), operators_of(made));
      if (std::any_of(made.inputs.begin() + std::ssize(listed), made.inputs.end(),
                      [](ValueId v) { return v.valid(); }))
        return Verdict::no("'{}' has {} inputs, of which the pattern lists {}", g.label(id),
                           made.inputs.size(), listed.size());
      if (!made.bodies.empty()) return Verdict::no("'{}' has bodies", g.label(id));
      for (std::size_t i = 0; i < made.outputs.size(); ++i) {
        const auto v = made.outputs[i];
        if (root && i == 0) continue;
        if (g.is_result(v)) return Verdict::no("'{}' is an output of the model", g.value(v).name);
        for (const auto& use : g.value(v).uses)
          if (root || std::find(nodes.begin(), nodes.end(), use.node) == nodes.end())
            return Verdict::no("'{}' is also read by '{}'", g.value(v).name, g.label(use.node));
      }
    }
    const auto fits = replaceable(m);
    return fits ? accepted(m) : fits;
  }

  /// Whether what was there and the replacement give one type of the same inputs.
  Verdict replaceable(const Match& m) const try {
    Graph trial;
    std::map<ValueId, ValueId> copies;
    const auto copy = [&](ValueId v) {
      if (!v.valid()) return v;
      auto& to = copies[v];
      if (!to.valid())
        to = m.graph().constant(v) ? trial.add_constant(*m.graph().constant(v))
                                   : trial.add_input("", with_names(m.graph().type(v), copies.size()));
      return to;
    };
    for (const auto& s : pattern_) {
      const Node& n = m.node(words_.at(s.name));
      std::vector<ValueId> in;
      std::transform(n.inputs.begin(), n.inputs.end(), std::back_inserter(in), copy);
      const auto id = trial.add_node(n.op, std::move(in), {}, static_cast<int>(n.outputs.size()));
      for (std::size_t i = 0; i < n.outputs.size(); ++i) {
        const auto v = copies[n.outputs[i]] = trial.node(id).outputs[i];
        trial.set_type(v, with_names(trial.type(v), copies.size()));
      }
    }
    const auto made = build(
        m, trial, copy, [&](Tensor t) { return trial.add_constant(std::move(t)); },
        [&](Op op, std::vector<ValueId> in) {
          const auto there = same_made(trial, op, in);
          return there.valid() ? there : trial.add(std::move(op), std::move(in));
        });
    const auto root = m.root_node().outputs[0], then = copies.at(root);
    const auto &is = trial.type(made), &was = m.graph().type(root);
    const bool same_sizes = is.shape.same(was.shape) || is.shape.same(trial.type(then).shape) ||
                            broadcast_alike(trial, made, then);
    if (is.element == was.element && same_sizes) return Verdict::yes();
    const bool may_fit = is.element == was.element && is.shape.fits(was.shape);
    return Verdict::no("it would make {} of {}{}", to_string(without_names(is)), to_string(was),
                       may_fit ? ", which may be another size" : "");
  } catch (const Error& e) {
    return Verdict::no("{}", e.what());
  }

  Verdict accepted(const Match& m) const {
    if (!declared_->accepts) return Verdict::yes();
    lamina_context context(nullptr);
    std::deque<BorderValue> all;
    std::vector<const char*> names;
    std::vector<const lamina_value*> values;
    for (const auto& [name, word] : words_) {
      const auto v = m.value(word);
      const auto* constant = m.graph().constant(v);
      names.push_back(name.c_str());
      all.emplace_back(context,
                       KnownTensor{true, m.graph().type(v), constant ? constant->to_aligned() : Tensor()});
      values.push_back(all.back().get());
    }
    const lamina_match border{sizeof(border), &context, names.size(), names.data(), values.data()};
    try {
      call_library(context, declared_->origin.name, "accepts", [&] { return declared_->accepts(&border); });
    } catch (const Error& e) {
      return Verdict::no("{}", e.what());
    }
    return Verdict::yes();
  }

  /// The replacement's last value in that graph, with what copies values, makes constants and adds nodes.
  template <class Copy, class Constant, class Add>
  ValueId build(const Match& m, const Graph& to, const Copy& copy, const Constant& constant,
                const Add& add) const {
    std::map<std::string, ValueId> made;
    ValueId last;
    for (const auto& s : replacement_) {
      std::vector<ValueId> in(s.arguments.size());
      auto numbers = m.graph().type(m.root_node().outputs[0]).element;
      for (std::size_t i = in.size(); i-- > 0;) {
        const auto& a = s.arguments[i];
        if (a.kind != Argument::Kind::name && a.kind != Argument::Kind::constant) continue;
        const auto it = made.find(a.name);
        in[i] = it != made.end() ? it->second : copy(m.value(words_.at(a.name)));
        // Numbers are of the type of what they stand beside, the first that is no condition.
        if (const auto type = to.type(in[i]).element; type != ElementType::boolean) numbers = type;
      }
      for (std::size_t i = 0; i < in.size(); ++i)
        if (s.arguments[i].kind == Argument::Kind::number)
          in[i] = constant(number_of(numbers, s.arguments[i].number));
      last = made[s.name] = add(operator_with(s, m), std::move(in));
    }
    return last;
  }

  Op operator_with(const RuleStatement& s, const Match& m) const {
    auto op = operator_of(s.op).copy();
    const auto all = op->attributes();
    for (const auto& [name, text] : s.attributes) {
      const auto& like = attribute_of(all, *op, name).value;
      op->set(name,
              text.starts_with('$') ? taken_from(text.substr(1), like, m) : *attribute_like(like, text));
    }
    if (const auto* custom = dynamic_cast<const CustomOp*>(op.get())) custom->require_attributes();
    return Op(std::shared_ptr<const AnyOp>(std::move(op)));
  }

  /// "s.alpha", or the value of the constant "c".
  Attribute taken_from(const std::string& text, const Attribute& like, const Match& m) const {
    const auto dot = text.find('.');
    const auto& word = words_.at(text.substr(0, dot));
    if (dot != std::string::npos) {
      const auto& op = m.node(word).op;
      return attribute_of(op->attributes(), *op, text.substr(dot + 1)).value;
    }
    const auto* constant = m.graph().constant(m.value(word));
    if (!constant || constant->size() != 1)
      fail(ErrorCode::bad_file, "'{}' is no constant of one element", m.graph().value(m.value(word)).name);
    const bool whole = std::holds_alternative<std::int64_t>(like);
    if (whole && !is_float(constant->element_type())) return to_ints(*constant)[0];
    const auto value = to_doubles(*constant)[0];
    if (whole) return whole_number(value);
    if (!std::holds_alternative<bool>(like)) return value;
    if (value != 0 && value != 1) fail(ErrorCode::bad_file, "{} is neither 0 nor 1", value);
    return value != 0;
  }

  void make(Rewrite& r) const {
    const auto made = build(
        r.match(), r.match().graph(), [](ValueId v) { return v; },
        [&](Tensor t) { return r.constant(std::move(t)); },
        [&](Op op, std::vector<ValueId> in) { return r.add(std::move(op), std::move(in)); });
    r.replace(made);
  }

  std::shared_ptr<const DeclaredRule> declared_;
  std::shared_ptr<const ExtensionSet> extensions_;  // operators of replacements stay loaded
  Registry registry_;
  std::vector<RuleStatement> pattern_, replacement_;
  std::map<std::string, Pattern> words_;  // by name: nodes and values
};

}  // namespace

std::shared_ptr<const Rules> extension_rules(const std::shared_ptr<const ExtensionSet>& extensions) {
  auto out = std::make_shared<Rules>();
  for (const auto& extension : extensions->all())
    for (const auto& declared : extension->rules) {
      const auto wrong = [&](const std::string& what) {
        fail(ErrorCode::bad_file, "{}: rule \"{}\": {}", extension->origin.path, declared->name, what);
      };
      for (const auto& ours : all_rules())
        if (ours.name == declared->name) wrong("lamina has a rule of that name");
      try {
        const auto made = std::make_shared<const TextRule>(declared, extensions);
        out->push_back(made->rule(made));
      } catch (const Error& e) {
        wrong(e.what());
      }
    }
  const auto takes_stages = [](const auto& extension) {
    return std::any_of(extension->operations.begin(), extension->operations.end(),
                       [](const auto& op) { return op->has(LAMINA_TAKES_STAGES); });
  };
  const auto& all = extensions->all();
  if (std::any_of(all.begin(), all.end(), takes_stages)) out->push_back(fuse_custom_simple());
  return out->empty() ? nullptr : out;
}

}  // namespace lamina
