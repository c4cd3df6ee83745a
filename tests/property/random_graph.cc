#include <algorithm>

#include "graph/text.h"
#include "ops/operators.h"
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

}  // namespace

const Families& all_families() {
  static const Families all = [] {
    Families families;
    for (auto* add :
         {add_compute_families, add_elementwise_families, add_movement_families, add_norm_families,
          add_special_families, add_binary_families, add_pieces, add_fusions, add_blocks})
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
  const auto graph = b.finish();
  // As it would be read from a file: ids without gaps, nodes in order.
  const auto text = print_graph(graph);
  return parse_graph(text.text, operators(), text.data);
}

}  // namespace lamina::testing
