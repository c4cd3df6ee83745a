/// Random arithmetic on shapes: what is known of sizes is what the interpreter computes.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/random.h"
#include "graph/infer.h"
#include "graph/text.h"
#include "interpreter/interpreter.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::testing {
namespace {

/// A graph of two inputs with some open sizes, and what is computed of their shapes.
class Arithmetic {
 public:
  explicit Arithmetic(std::uint64_t seed) : random_(seed) {
    for (const char* name : {"x", "y"}) {
      std::vector<Dim> dims;
      Dims sizes;
      for (auto rank = below(5); rank > 0; --rank) {
        const auto size = static_cast<std::int64_t>(below(6));
        sizes.push_back(size);
        const auto kind = below(4);
        // A name stands for one size.
        dims.push_back(kind == 0   ? Dim::named("N" + std::to_string(size))
                       : kind == 1 ? Dim(std::max<std::int64_t>(size - 2, 0), size + 2)
                                   : Dim(size));
      }
      const auto v = graph_.add_input(name, {ElementType::f32, Shape(dims)});
      inputs_.emplace_back(ElementType::f32, sizes);
      values_.push_back(graph_.add(ShapeOf{below(3) == 0 ? ElementType::i32 : ElementType::i64}, {v}));
    }
    while (values_.size() < 24) {
      try {
        add_one();
      } catch (const Error&) {  // what does not fit
        values_.push_back(constant());
      }
    }
    for (const auto v : values_) graph_.add_result("", v);
  }

  const Graph& graph() const { return graph_; }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<ValueId>& values() const { return values_; }

 private:
  std::uint64_t below(std::uint64_t n) { return random_.below(n); }
  ValueId any() { return values_[below(values_.size())]; }

  std::int64_t number() {
    constexpr std::int64_t numbers[] = {0, 1, 2, 3, -1, -2, 4, INT64_MAX, INT64_MIN, INT32_MAX, 1LL << 62, 5};
    return numbers[below(below(4) == 0 ? std::size(numbers) : 5)];
  }

  ValueId constant() {
    Ints list;
    for (auto n = below(4); n > 0; --n) list.push_back(number());
    const auto type = below(4) == 0 ? ElementType::i32 : ElementType::i64;
    if (type == ElementType::i32)
      for (auto& v : list) v = static_cast<std::int32_t>(v);
    if (below(3) == 0) return graph_.add_constant(from_ints(type, {}, {list.empty() ? 0 : list[0]}));
    return graph_.add_constant(from_ints(type, {std::ssize(list)}, list));
  }

  ValueId ints(const Ints& list) { return graph_.add_constant(Tensor::of({std::ssize(list)}, list)); }
  ValueId scalar(std::int64_t n) { return graph_.add_constant(Tensor::scalar(n)); }

  void add_one() {
    const auto a = any(), b = below(3) == 0 ? constant() : any();
    switch (below(12)) {
      case 0:
        return keep(graph_.add(Add{}, {a, b}));
      case 1:
        return keep(graph_.add(Subtract{}, {a, b}));
      case 2:
        return keep(graph_.add(Multiply{}, {a, b}));
      case 3:
        return keep(graph_.add(Divide{below(2) == 0}, {a, b}));
      case 4:
        return keep(graph_.add(Gather{}, {a, below(2) ? b : scalar(number()), scalar(0)}));
      case 5:
        return keep(
            graph_.add(Slice{}, {a, ints({number()}), ints({number()}), ints({below(3) ? 1 : number()})}));
      case 6:
        return keep(graph_.add(Slice{}, {a, b, ints({number()}), ints({1}), ints({below(2) ? 0 : -1})}));
      case 7:
        return keep(graph_.add(Concat{0}, {a, b}));
      case 8:
        return keep(graph_.add(Unsqueeze{}, {a, ints({0})}));
      case 9:
        return keep(graph_.add(Squeeze{}, {a}));
      case 10:
        return keep(graph_.add(Convert{below(2) ? ElementType::i64 : ElementType::u32}, {a}));
      default:
        return keep(graph_.add(Reshape{below(2) == 0}, {a, below(2) ? ints({-1}) : ints({})}));
    }
  }
  void keep(ValueId v) { values_.push_back(v); }

  SplitMix random_;
  Graph graph_;
  std::vector<Tensor> inputs_;
  std::vector<ValueId> values_;
};

void expect_known_sizes(std::uint64_t seed) {
  const Arithmetic a(seed);
  SCOPED_TRACE(fmt::format("seed {}\n{}", seed, print_graph(a.graph()).text));
  std::map<ValueId, Tensor> computed;
  InterpreterOptions options;
  options.observe = [&](const Graph& g, NodeId id, const std::vector<Tensor>&,
                        const std::vector<Tensor>& out) { computed[g.node(id).outputs[0]] = out[0]; };
  try {
    interpret(a.graph(), a.inputs(), options);
  } catch (const Error&) {  // an index out of range: the values before it count
  }
  for (const auto& [v, tensor] : computed) {
    const auto dims = dims_of_value(a.graph(), v);
    EXPECT_TRUE(a.graph().type(v).shape.fits(Shape::of(tensor.shape())));
    if (!dims) continue;
    const auto values = to_ints(tensor);
    ASSERT_EQ(dims->size(), values.size()) << a.graph().value(v).name;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto& d = (*dims)[i];
      const auto wanted = values[i];
      // "Any size" stands for what may be negative, too.
      const bool open = d.low() == 0 && d.high() == Dim::kUnbounded && d.name().empty();
      EXPECT_TRUE(open || (d.low() <= wanted && wanted <= d.high()))
          << a.graph().value(v).name << " element " << i << " is " << wanted << ", known as " << to_string(d);
      if (!d.known() && d.name().starts_with("N")) {
        EXPECT_EQ(std::to_string(wanted), d.name().substr(1));
      }
    }
  }
}

TEST(ShapeValues, areWhatIsComputed) {
  std::uint64_t first = 0, number = 3000;
  if (const char* more = std::getenv("LAMINA_SEED")) first = 1000003 * std::strtoull(more, nullptr, 10);
  if (const char* graphs = std::getenv("LAMINA_GRAPHS")) number = std::strtoull(graphs, nullptr, 10);
  for (auto seed = first; seed < first + number && !::testing::Test::HasFailure(); ++seed)
    expect_known_sizes(seed);
}

}  // namespace
}  // namespace lamina::testing
