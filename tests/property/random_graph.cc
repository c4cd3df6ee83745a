#include <algorithm>
#include <numeric>

#include "graph/text.h"
#include "ops/operators.h"
#include "ops/shaping.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

void add_first_input(GraphBuilder& b) {
  const auto n = b.batch(), c = b.channels();
  switch (b.below(10)) {
    case 0:
      b.input(ElementType::f32, {n, c});
      break;
    case 1:
      b.input(ElementType::f32, {n, b.extent(), c});
      break;
    case 2:
      b.input(ElementType::f32, {n, c, b.below(4) + 1, b.below(5) + 1, b.below(5) + 1});
      break;
    case 3:
      if (b.percent(50))
        b.wide_input(b.one_of(integer_types()), {n, c, b.extent()});
      else
        b.input(b.one_of({ElementType::i64, ElementType::i32, ElementType::u8, ElementType::i8}),
                {n, c, b.extent()});
      b.input(ElementType::f32, {n, c, b.extent()});
      break;
    case 4:
      if (b.percent(30)) b.input(ElementType::f32, {});
      b.input(ElementType::f32, {c});
      break;
    default:
      b.input(ElementType::f32, {n, c, b.extent(), b.extent()});
  }
}

Ints random_order(GraphBuilder& b, std::size_t rank) {
  Ints order(rank);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = rank; i-- > 1;)
    std::swap(order[i], order[static_cast<std::size_t>(b.below(static_cast<std::int64_t>(i) + 1))]);
  return order;
}

/// A Transpose, any other family behind it, and mostly the Transpose back where the rank is still the same.
void add_between_transposes(GraphBuilder& b) {
  const auto x = b.pick([&](ValueId v) { return b.rank(v) >= 2; });
  if (!x) return;
  const auto order = random_order(b, b.rank(*x));
  const auto there = b.add(Transpose{}, {*x, b.ints(order)});
  if (!there) return;
  b.focus(*there);
  const auto& families = all_families();
  for (auto n = b.between(1, 2); n-- > 0;) {
    families[static_cast<std::size_t>(b.between(1, static_cast<std::int64_t>(families.size()) - 1))].add(b);
    b.focus(b.newest());
  }
  b.focus({});
  const auto last = b.newest();
  if (last == *there || b.rank(last) < 2 || b.percent(10)) return;
  auto back = random_order(b, b.rank(last));
  if (back.size() == order.size() && b.percent(80))
    for (std::size_t i = 0; i < order.size(); ++i)
      back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  b.add(Transpose{}, {last, b.ints(back)});
}

/// Where inference allows it: constants that become inputs, or get more axes of size 1.
Graph with_other_constants(Graph graph, std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<ValueId> constants;
  for (std::uint32_t v = 0; v < graph.value_slots(); ++v)
    if (const auto* t = graph.constant({v}); t && t->element_type() == ElementType::f32)
      constants.push_back({v});
  for (const auto v : constants) {
    if (random.below(3) != 0) continue;
    const Tensor t = *graph.constant(v);
    Graph changed = graph;
    try {
      if (random.below(2) == 0) {
        changed.replace(v, changed.add_input("c" + std::to_string(v.index), graph.type(v)));
      } else {
        Dims dims(1 + random.below(3), 1);
        dims.insert(dims.end(), t.shape().begin(), t.shape().end());
        changed.replace(v, changed.add_constant(t.reshaped(dims)));
      }
      changed.infer_types();
      graph = std::move(changed);
    } catch (const Error&) {  // inference wants it as it is
    }
  }
  return graph;
}

}  // namespace

const Families& all_families() {
  static const Families all = [] {
    Families families{{"between transposes", 8, add_between_transposes}};
    for (auto* add : {add_compute_families, add_elementwise_families, add_movement_families,
                      add_norm_families, add_special_families, add_integer_families, add_quantised_families,
                      add_layers, add_stored_families, add_binary_families, add_pieces, add_fusions,
                      add_linear_families, add_blocks, add_pictures, add_importers})
      add(families);
    return families;
  }();
  return all;
}

Graph random_graph(std::uint64_t seed) {
  const bool large = seed % 10 == 9;
  GraphBuilder b(seed, large);
  const auto& families = all_families();
  // A graph likes some families and does without others.
  std::vector<std::int64_t> weights;
  std::int64_t sum = 0;
  for (const auto& f : families) {
    weights.push_back(f.weight * b.one_of<std::int64_t>({0, 1, 1, 1, 4}));
    sum += weights.back();
  }
  add_first_input(b);
  const auto most = large ? std::int64_t{5} : std::int64_t{20};
  const auto wanted = static_cast<std::size_t>(1 + std::min(b.below(most), b.below(most * 7 / 5)));
  for (int tries = 0; tries < 200 && b.nodes() < wanted; ++tries) {
    auto at = b.below(sum);
    std::size_t f = 0;
    while (at >= weights[f]) at -= weights[f++];
    families[f].add(b);
  }
  const auto graph = seed % 5 == 2 ? with_other_constants(b.finish(), seed) : b.finish();
  // As it would be read from a file: ids without gaps, nodes in order.
  const auto text = print_graph(graph);
  return parse_graph(text.text, operators(), text.data);
}

}  // namespace lamina::testing
