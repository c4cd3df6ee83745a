/// The text form with the real operators.
#include "ops/operators.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "base/random.h"
#include "graph/limits.h"
#include "graph/text.h"
#include "graph/verify.h"

namespace lamina {
namespace {

TEST(Operators, AttributesHaveNamesOfTheirOwn) {
  for (const auto& name : operators().names()) {
    std::set<std::string> seen;
    for (const auto& a : operators().find(name)->attributes()) {
      EXPECT_FALSE(a.name.empty()) << name;
      EXPECT_TRUE(seen.insert(a.name).second) << name << " " << a.name;
    }
    EXPECT_TRUE(operators().find(name)->changed_attributes().empty()) << name;
    EXPECT_EQ(operators().find(name)->info().name, name);
  }
}

TEST(Operators, SmallGraphPrints) {
  const auto g = parse_graph(R"(graph (x: f32[1,8,N,56]) -> (y) {
  w = const f32[16,8,3,3] seed(1)
  c = Convolution(x, w) strides=[1,1] pads_begin=[1,1] pads_end=[1,1]
  y = Relu(c)
}
)",
                             operators());
  EXPECT_EQ(verify(g), Strings{});
  const auto printed = print_graph(g);
  EXPECT_EQ(printed.text, R"(graph (x: f32[1,8,N,56]) -> (y) {
  w = const f32[16,8,3,3] data(0)
  c: f32[1,16,N,56] = Convolution(x, w) strides=[1,1] pads_begin=[1,1] pads_end=[1,1]
  y: f32[1,16,N,56] = Relu(c)
}
)");
  EXPECT_EQ(print_graph(parse_graph(printed.text, operators(), printed.data)).text, printed.text);
}

TEST(Operators, MisspeltNames) {
  try {
    parse_graph("graph (x: f32[1]) -> (y) {\n  y = MaxPol(x)\n}", operators());
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "line 2: operator \"MaxPol\" is not known, did you mean \"MaxPool\"?");
  }
}

/// Graphs as a hostile file may have them: any operator with any inputs and any attributes.
class AnyNode {
 public:
  explicit AnyNode(std::uint64_t seed) : random_(seed) {}

  /// Adds a node to a new graph; an Error is fine, anything else is not.
  void add(const AnyOp& prototype) {
    Graph g;
    usual_element_ = element();
    usual_shape_ = shape(false);
    auto op = prototype.copy();
    for (const auto& a : prototype.attributes())
      if (random_.below(2)) set(*op, a);
    const auto& info = prototype.info();
    const auto most =
        static_cast<std::uint64_t>(std::min(info.max_inputs, info.min_inputs + 4) - info.min_inputs + 1);
    std::vector<ValueId> inputs;
    for (auto n = static_cast<std::uint64_t>(info.min_inputs) + random_.below(most); n-- > 0;)
      inputs.push_back(random_.below(12) ? input(g) : ValueId{});
    const int outputs = info.outputs == kMany ? static_cast<int>(random_.below(4)) : info.outputs;
    try {
      const auto node =
          g.add_node(Op(std::shared_ptr<const AnyOp>(std::move(op))), inputs, "n", outputs, bodies(info));
      for (const auto v : g.node(node).outputs) g.add_result(g.value(v).name, v);
      ++accepted;
      text_ = print_graph(g, {.self_contained = true}).text;
      EXPECT_EQ(print_graph(parse_graph(text_, operators()), {.self_contained = true}).text, text_);
    } catch (const Error& e) {
      EXPECT_NE(e.code(), ErrorCode::internal) << info.name << ": " << e.what() << "\n" << text_;
    }
  }
  int accepted = 0;

 private:
  std::int64_t integer() {
    static constexpr std::int64_t kOdd[] = {0,
                                            -1,
                                            std::numeric_limits<std::int64_t>::min(),
                                            std::numeric_limits<std::int64_t>::max(),
                                            std::int64_t{1} << 31,
                                            std::int64_t{1} << 40,
                                            -3};
    return random_.below(5) ? static_cast<std::int64_t>(random_.below(4))
                            : kOdd[random_.below(std::size(kOdd))];
  }
  Ints integers() {
    Ints out(random_.below(5));
    for (auto& v : out) v = integer();
    return out;
  }
  double real() { return random_.below(5) ? random_.uniform() * 4 : static_cast<double>(integer()); }
  ElementType element() {
    return random_.below(2)
               ? ElementType::f32
               : static_cast<ElementType>(random_.below(static_cast<int>(ElementType::undefined)));
  }
  Shape shape(bool known) {
    if (!known && random_.below(8) == 0) return {};
    std::vector<Dim> dims(random_.below(6));
    for (auto& d : dims) {
      const auto kind = random_.below(10);
      d = static_cast<std::int64_t>(random_.below(4)) + 1;
      if (!known && kind == 0) d = Dim();
      if (!known && kind == 1) d = Dim::named("N", 1, 8);
      if (!known && kind == 2) d = std::int64_t{1} << random_.below(62);
      if (kind == 3) d = 0;
    }
    Shape out(dims);
    return beyond_limits(out).empty() ? out : Shape{};
  }
  /// Mostly the same in one node, so that some nodes are right.
  TensorType usual() {
    return {random_.below(6) ? usual_element_ : element(), random_.below(3) ? usual_shape_ : shape(false)};
  }
  ValueId input(Graph& g) {
    if (random_.below(2)) return g.add_input("x", usual());
    if (random_.below(2)) {
      const auto values = integers();
      return g.add_constant(values.size() == 1 && random_.below(2)
                                ? Tensor::scalar(values[0])
                                : Tensor::of({std::ssize(values)}, values));
    }
    return g.add_constant(seeded_tensor(element(), shape(true).sizes(), random_.next()));
  }
  void set(AnyOp& op, const NamedAttribute& a) {
    try {
      op.set(a.name, value(op, a));
    } catch (const Error&) {  // of enumerations that have fewer values
    }
  }
  Attribute value(AnyOp& op, const NamedAttribute& a) {
    if (std::holds_alternative<bool>(a.value)) return random_.below(2) == 0;
    if (std::holds_alternative<std::int64_t>(a.value)) return integer();
    if (std::holds_alternative<double>(a.value)) return real();
    if (std::holds_alternative<Ints>(a.value)) return integers();
    if (std::holds_alternative<Floats>(a.value)) return Floats(random_.below(5), real());
    if (std::holds_alternative<Strings>(a.value)) return Strings(random_.below(4), "relu");
    if (std::holds_alternative<ElementType>(a.value)) return element();
    if (std::holds_alternative<Shape>(a.value)) return shape(false);
    if (std::holds_alternative<Tensor>(a.value)) return seeded_tensor(element(), shape(true).sizes(), 1);
    return word(op, a.name);
  }
  /// One of an enumeration's words, which only its error tells.
  std::string word(AnyOp& op, const std::string& name) {
    try {
      op.set(name, std::string("?"));
    } catch (const Error& e) {
      std::string_view all = e.what();
      all.remove_prefix(std::min(all.size(), all.find("one of ") + 7));
      std::vector<std::string> words;
      while (!all.empty()) {
        const auto end = std::min(all.find(", "), all.size());
        words.emplace_back(all.substr(0, end));
        all.remove_prefix(std::min(all.size(), end + 2));
      }
      if (!words.empty()) return words[random_.below(words.size())];
    }
    return "N,C,H->N";
  }
  std::vector<Graph> bodies(const OpInfo& info) {
    std::vector<Graph> out;
    if (!has(info.traits, Trait::control_flow)) return out;
    out.resize(random_.below(4));
    for (auto& body : out) {
      for (auto n = random_.below(5); n-- > 0;) body.add_input("p", usual());
      for (auto n = random_.below(4); n-- > 0;) body.add_result("r", input(body));
    }
    return out;
  }

  SplitMix random_;
  std::string text_;
  ElementType usual_element_ = ElementType::f32;
  Shape usual_shape_;
};

TEST(Operators, InferenceSurvivesAnything) {
  std::size_t never = 0;
  std::uint64_t seed = 1;
  for (const auto& name : operators().names()) {
    SCOPED_TRACE(name);
    AnyNode any(seed++);
    for (int i = 0; i < 1000; ++i) any.add(*operators().find(name));
    never += any.accepted == 0;
  }
  EXPECT_LT(never, operators().names().size() / 5);  // else this test tests little
}

}  // namespace
}  // namespace lamina
