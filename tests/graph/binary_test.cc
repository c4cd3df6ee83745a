/// Graphs as bytes.
#include "graph/binary.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "graph/same.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "tests/graph/test_operators.h"

namespace lamina {
namespace {

using test::registry;

/// Tensors in place.
void write_tensor(ByteWriter& to, const Tensor& t) {
  to.put(t.valid());
  if (!t.valid()) return;
  to.put(t.element_type());
  to.list(t.shape(), [&](std::int64_t d) { to.put(d); });
  to.append(t.raw(), t.bytes());
}

Tensor read_tensor(ByteReader& from) {
  if (!from.flag()) return {};
  const auto type = from.choice(ElementType::u4);
  const auto dims = from.list([&] { return from.get<std::int64_t>(); }, 8);
  std::int64_t count = 1;
  for (const auto d : dims)
    if (d < 0 || d > 1000 || (count *= d) > 1000) from.wrong("a small tensor");
  Tensor t(type, dims);
  std::memcpy(t.raw(), from.take(t.bytes()).data(), t.bytes());
  return t;
}

std::vector<std::byte> bytes_of(const Graph& graph) {
  ByteWriter to;
  write_graph(to, graph, write_tensor);
  return to.take();
}

Graph graph_of(const std::vector<std::byte>& bytes) {
  ByteReader from(bytes, "graph");
  auto g = read_graph(from, registry(), read_tensor);
  from.end();
  return g;
}

const char* const kText = R"(graph "net" (x: f32[1,N,?,1..8], y: i64[]) -> ("r" = c, d) {
  sources { 0 "conv1" "Conv" }
  w = const f32[2] {0.1, nan(0x7fc00001)}
  k = const i4[40] seed(3)
  c: f32[1,N,?,1..8] = Compute(x, _, w, y) strides=[2,2] groups=4 @"the \x41 layer" from [0] {
    body graph (p: f32[1,N,?,1..8], s: i64[]) -> (q) { q = Relu(p) }
  }
  d = Everything(k) reals=[0.5,1e9] shape=shape[1,N:2..] tensor=tensor u8[2] seed(4) text="a" flavour=sour-sweet # end
}
)";

TEST(Binary, reads_what_it_writes) {
  const Graph graph = parse_graph(kText, registry());
  const auto bytes = bytes_of(graph);
  const Graph back = graph_of(bytes);
  EXPECT_TRUE(verify(back).empty());
  EXPECT_EQ(print_graph(graph, {.self_contained = true}).text,
            print_graph(back, {.self_contained = true}).text);
  EXPECT_EQ(bytes_of(back), bytes);
}

TEST(Binary, keeps_ids_and_names_that_are_taken) {
  Graph graph;
  const auto x = graph.add_input("x", {ElementType::f32, Shape{2}});
  const auto gone =
      graph.add_node(Op(std::shared_ptr<const AnyOp>(registry().find("Relu")->copy())), {x}, "gone");
  const auto y = graph.add(Op(std::shared_ptr<const AnyOp>(registry().find("Relu")->copy())), {x}, "y");
  graph.add_result("y", y);
  graph.erase(gone);
  Graph back = graph_of(bytes_of(graph));
  EXPECT_EQ(back.node_slots(), 2u);
  EXPECT_EQ(back.find_value("y"), y);
  const auto relu = [&](Graph& g) {
    return g.value(g.add(Op(std::shared_ptr<const AnyOp>(registry().find("Relu")->copy())), {x}, "gone"))
        .name;
  };
  EXPECT_EQ(relu(back), relu(graph));  // the same name as the original would give
}

TEST(Binary, damaged_bytes_are_safe) {
  const auto good = bytes_of(parse_graph(kText, registry()));
  SplitMix random(11);
  std::size_t refused = 0;
  for (int i = 0; i < 20000; ++i) {
    auto bad = good;
    for (auto n = random.below(3) + 1; n-- > 0;)
      bad[random.below(bad.size())] = static_cast<std::byte>(random.below(256));
    if (random.below(8) == 0) bad.resize(random.below(bad.size()));
    try {
      (void)graph_of(bad);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 5000u);
}

}  // namespace
}  // namespace lamina
