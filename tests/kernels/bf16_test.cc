/// Products of bf16 numbers with f32 sums, and what runs between them, against the interpreter: every offer.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/native_offers.h"

namespace lamina::testing {
namespace {

bool has_bf16() { return static_cast<bool>(multiplies_bf16(host())); }

/// Every offer but the reference for the last node; a bf16 result may be one step off.
void expect_offers(const std::string& text, const std::string& wanted_label = "") {
  const auto g = parse(text);
  std::size_t seen = 0;
  InterpreterOptions observe;
  observe.observe = [&](const Graph& graph, NodeId id, const std::vector<Tensor>& in,
                        const std::vector<Tensor>& out) {
    if (graph.node_slots() != g.node_slots() || graph.node(id).outputs[0] != g.results()[0].value) return;
    for (const auto& offer : ask_kernels(NodeView(graph, id)).offers) {
      if (offer.last_resort || offer.is_view || !offer.make) continue;
      seen += offer.label.find(wanted_label) != std::string::npos;
      const auto got = run_offer(graph, id, offer, in, {.threads = 2}).at(0);
      double largest = 0;
      for (const auto v : to_doubles(out[0])) largest = std::max(largest, std::fabs(v));
      const bool half = out[0].element_type() == ElementType::bf16;
      expect_elements(got, out[0], half ? 0x1p-7 : 1e-5, largest * 2e-5, text + offer.label);
    }
  };
  interpret(g, random_inputs(g, 7), observe);
  EXPECT_GT(seen, 0u) << "no offer " << wanted_label << " for " << text;
}

/// What follows a product: nothing, conversions, stages with an operand of bf16.
const std::string kStages[] = {
    "s = Relu(r)", "s = Convert(r) destination_type=bf16",
    "t = Relu(r)\n s = Convert(t) destination_type=bf16",
    "t = HSwish(r)\n s = Convert(t) destination_type=bf16",
    "k = const f32[] {0.5}\n t = Multiply(r, k)\n u = Sigmoid(t)\n s = Convert(u) destination_type=bf16"};
const std::string kAdded[] = {"q = Convert(p) destination_type=f32\n s = Add(r, q)",
                              "q = Convert(p) destination_type=f32\n t = Add(r, q)\n u = Relu(t)\n"
                              " s = Convert(u) destination_type=bf16",
                              "t = Relu(r)\n q = Convert(p) destination_type=f32\n u = Multiply(q, t)\n"
                              " s = Convert(u) destination_type=bf16"};

TEST(Bf16, convolutions) {
  if (!has_bf16()) GTEST_SKIP() << "this processor has no bf16 instructions";
  struct Case {
    std::string x, w, attributes, y;
  };
  const Case cases[] = {
      {"1,16,9,10", "32,16,3,3", "pads_begin=[1,1] pads_end=[1,1]", "1,32,9,10"},
      {"2,40,7,7", "24,40,1,1", "", "2,24,7,7"},
      {"1,3,20,21", "17,3,7,7", "strides=[2,2] pads_begin=[3,3] pads_end=[3,3]", "1,17,10,11"},
      {"1,33,9,9", "33,1,3,3", "groups=33 pads_begin=[1,1] pads_end=[1,1]", "1,33,9,9"},
      {"1,24,8,8", "36,8,3,3", "groups=3", "1,36,6,6"},
      {"1,12,8,8", "12,12,3,3", "dilations=[2,2]", "1,12,4,4"},
      {"1,20,30", "8,20,5", "", "1,8,26"},
      {"1,8,5,6,7", "16,8,3,3,3", "", "1,16,3,4,5"},
      {"1,5,6,1", "7,5,3,1", "", "1,7,4,1"},
  };
  for (const auto& c : cases) {
    const auto start = fmt::format(
        "graph (x: bf16[{}], p: bf16[{}]) -> (y) {{\n w = const bf16[{}] seed(1)\n b = const f32[{}] "
        "seed(2)\n",
        c.x, c.y, c.w, c.w.substr(0, c.w.find(',')));
    expect_offers(start + fmt::format(" y = Convolution(x, w, b) sums=f32 {}\n}}\n", c.attributes), "bf16");
    for (const auto& stages : kStages)
      expect_offers(
          start + fmt::format(" y = Convolution(x, w, b) sums=f32 {} {{\n body graph (r: f32[{}]) -> (s) "
                              "{{\n {}\n }}\n }}\n}}\n",
                              c.attributes, c.y, stages),
          "bf16");
    for (const auto& stages : kAdded)
      expect_offers(
          start + fmt::format(" y = Convolution(x, w, b, _, _, p) sums=f32 {} {{\n body graph (r: f32[{}], "
                              "p: bf16[{}]) -> (s) {{\n {}\n }}\n }}\n}}\n",
                              c.attributes, c.y, c.y, stages),
          "bf16");
  }
}

TEST(Bf16, matrix_products) {
  if (!has_bf16()) GTEST_SKIP() << "this processor has no bf16 instructions";
  struct Case {
    std::string x, w, attributes, y;
  };
  const Case cases[] = {{"33,50", "50,75", "", "33,75"},
                        {"1,700", "300,700", "transpose_b=true", "1,300"},
                        {"2,5,37", "37,53", "", "2,5,53"},
                        {"40,6", "40,9", "transpose_a=true", "6,9"}};
  for (const auto& c : cases) {
    const auto start = fmt::format(
        "graph (x: bf16[{}], p: bf16[{}]) -> (y) {{\n w = const bf16[{}] seed(1)\n", c.x, c.y, c.w);
    expect_offers(start + fmt::format(" y = MatMul(x, w) sums=f32 {}\n}}\n", c.attributes), "bf16");
    for (const auto& stages : kStages)
      expect_offers(
          start + fmt::format(" y = MatMul(x, w) sums=f32 {} {{\n body graph (r: f32[{}]) -> (s) {{\n {}\n "
                              "}}\n }}\n}}\n",
                              c.attributes, c.y, stages),
          "bf16");
    for (const auto& stages : kAdded)
      expect_offers(
          start + fmt::format(" y = MatMul(x, w, _, _, _, p) sums=f32 {} {{\n body graph (r: f32[{}], p: "
                              "bf16[{}]) -> (s) {{\n {}\n }}\n }}\n}}\n",
                              c.attributes, c.y, c.y, stages),
          "bf16");
  }
}

TEST(Bf16, poolings) {
  for (const std::string channels : {"1", "3", "4", "7", "16", "37", "150"})
    for (const std::string attributes :
         {"kernel=[3,3] strides=[2,2] pads_begin=[1,1] pads_end=[1,1]", "kernel=[2,2] strides=[1,1]",
          "kernel=[3,3] strides=[1,1] pads_begin=[1,1] pads_end=[1,1]", "kernel=[9,10] strides=[1,1]",
          "kernel=[3,2] strides=[2,3] rounding_type=ceil"})
      for (const std::string op : {"MaxPool", "AvgPool", "AvgPool exclude"}) {
        const bool exclude = op.ends_with("exclude");
        expect_offers(fmt::format("graph (x: bf16[2,{},9,10]) -> (y) {{\n y = {}(x) {} {}\n}}\n", channels,
                                  exclude ? "AvgPool" : op, attributes, exclude ? "exclude-pad=true" : ""),
                      "pool_");
      }
}

TEST(Bf16, a_maximum_keeps_what_is_not_a_number) {
  const auto g = parse("graph (x: bf16[1,20,4,4]) -> (y) {\n y = MaxPool(x) kernel=[2,2] strides=[2,2]\n}\n");
  Tensor x(ElementType::bf16, {1, 20, 4, 4});
  auto bits = x.data<bf16_t>();
  const std::uint16_t special[] = {0x7fc0, 0xff80, 0x7f80, 0x8000, 0x0000, 0xff7f, 0x7fa0, 0x0001};
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = {special[i * 7 % 61 % 8]};
  const auto wanted = interpret(g, {x}).at(0);
  const auto id = g.order()[0];
  for (const auto& offer : ask_kernels(NodeView(g, id)).offers)
    if (!offer.last_resort)
      expect_elements(run_offer(g, id, offer, {x}, {.threads = 1}).at(0), wanted, 0, 0, offer.label);
}

TEST(Bf16, what_moves_elements_moves_them_natively) {
  for (const std::string node :
       {"Concat(x, x) axis=1", "Transpose(x, order)", "ShuffleChannels(x) axis=1 group=4",
        "DepthToSpace(x) block_size=2", "SpaceToDepth(x) block_size=2", "Split(x, one) num_splits=2"})
    expect_offers(
        fmt::format("graph (x: bf16[1,16,4,6]) -> (y) {{\n order = const i64[4] {{0, 2, 3, 1}}\n shape = "
                    "const i64[2] {{4, 96}}\n one = const i64[] {{1}}\n y{} = {}\n}}\n",
                    node.starts_with("Split") ? ", z" : "", node));
}

TEST(Bf16, conversions) {
  for (const std::string dims : {"1", "37", "2,3,5,7", "1,64,9,9", "3,1000"}) {
    expect_offers(
        fmt::format("graph (x: f32[{}]) -> (y) {{\n y = Convert(x) destination_type=bf16\n}}\n", dims),
        "bf16");
    expect_offers(
        fmt::format("graph (x: bf16[{}]) -> (y) {{\n y = Convert(x) destination_type=f32\n}}\n", dims),
        "f32");
  }
}

TEST(Bf16, machines_without_it_refuse_products) {
  const auto g = parse(
      "graph (x: bf16[1,16,9,9]) -> (y) {\n w = const bf16[16,16,3,3] seed(1)\n y = Convolution(x, w) "
      "sums=f32\n}\n");
  const auto here = limited(host(), Isa::avx2);
  for (const auto& offer : ask_kernels(NodeView(g, g.order()[0], here)).offers)
    EXPECT_TRUE(offer.last_resort);
}

}  // namespace
}  // namespace lamina::testing
