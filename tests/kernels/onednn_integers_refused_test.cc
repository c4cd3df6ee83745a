/// Products of u8 and i8 that oneDNN may not compute, since its sums would be wrong; layers of them, and what
/// is no number.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/native_offers.h"
#include "tests/kernels/onednn_integer_nodes.h"

namespace lamina::testing {
namespace {

/// What oneDNN says of a node's last operator on a machine: its offers, and why there are no others.
Answers asked(const std::string& text, const Machine& machine = host()) {
  const auto g = parse(text);
  auto answers = ask_kernels(NodeView(g, g.order().back(), machine));
  std::erase_if(answers.offers, [](const Offer& o) { return o.kernel.find("onednn") != 0; });
  std::erase_if(answers.refusals, [](const auto& r) { return r.kernel.find("onednn") != 0; });
  return answers;
}

void expect_refused(const std::string& text, const std::string& reason, const Machine& machine = host()) {
  const auto answers = asked(text, machine);
  EXPECT_TRUE(answers.offers.empty()) << text << answers.offers[0].label;
  const auto says = [&](const auto& r) { return r.reason.find(reason) != std::string::npos; };
  EXPECT_TRUE(std::any_of(answers.refusals.begin(), answers.refusals.end(), says)) << text << reason;
}

TEST(OnednnIntegers, are_refused_where_sums_would_saturate) {
  for (const auto isa : {Isa::sse41, Isa::avx2})
    for (const auto& o : kOperands) {
      auto machine = limited(host(), isa);
      machine.features = machine.features.without({Feature::avx_vnni});
      expect_refused(text_of(kConvolutions[0], o, kEpilogues[3], true), "int8: without VNNI", machine);
      expect_refused(text_of(kProducts[0], o, kEpilogues[3], true), "int8: without VNNI", machine);
    }
}

/// oneDNN's transposed convolutions turn NaN into 255.
TEST(OnednnIntegers, transposed_ones_store_numbers_only) {
  const auto text = [](const std::string& root) {
    return "graph (x: u8[1,16,5,5]) -> (y) {\n w = const i8[16,16,2,2] seed(1)\n y = "
           "ConvolutionBackpropData(x, w) "
           "strides=[2,2] {\n body graph (r: i32[1,16,10,10]) -> (q) {\n t = Convert(r) "
           "destination_type=f32\n"
           " u = " +
           root +
           "(t)\n v = Sigmoid(u)\n s = const f32[] {0.01}\n"
           " q = Quantize(v, s) destination_type=u8\n }\n}\n}\n";
  };
  for (const auto& o : asked(text("Sqrt")).offers)
    EXPECT_NE(o.label.find("+stages"), std::string::npos) << o.label;
}

/// oneDNN adds a second tensor in that tensor's steps, from its zero point on.
TEST(OnednnIntegers, numbers_that_are_lost_in_a_second_tensor_s_steps_are_added_behind) {
  if (!multiplies_here()) GTEST_SKIP() << "this processor has no VNNI";
  const auto adds = [](const std::string& steps, const std::string& zero_point) {
    const Epilogue e{
        "t = Convert(s) destination_type=f32\n m = const f32[] {0.01}\n u = Multiply(t, m)\n"
        " k = const f32[] {" +
            steps + "}\n z = const u8[] {" + zero_point + "}\n d = Dequantize(p, k, z)\n r = Add(u, d)",
        "o = const f32[] {1}\n q = Quantize(r, o) destination_type=u8", 1, false, "u8"};
    const auto text = replaced(text_of(kConvolutions[1], {}, e, true), "p: u8[2,24,7,7]", "p: u8[1,24,1,1]");
    const auto offers = asked(text).offers;
    EXPECT_FALSE(offers.empty());
    return std::any_of(offers.begin(), offers.end(),
                       [](const Offer& o) { return o.label.find("+stages") == std::string::npos; });
  };
  EXPECT_TRUE(adds("4", "128"));
  EXPECT_TRUE(adds("1000", "0"));
  EXPECT_FALSE(adds("1000", "128"));
  EXPECT_FALSE(adds("1e-37", "0"));
  EXPECT_FALSE(adds("1e30", "0"));
}

TEST(OnednnIntegers, what_would_be_wrong_is_refused) {
  if (!multiplies_here()) GTEST_SKIP() << "this processor has no VNNI";
  expect_refused(text_of({"1,16,9,10", "16,32,2,2", "strides=[2,2]", "1,32,18,20", 16, false, true},
                         {"u8", "i8", "131"}, kEpilogues[0], true),
                 "transposed convolutions are wrong with zero points");
  expect_refused(
      text_of({"1,8,5", "8,1,2", "strides=[2] output_padding=[1] groups=8", "1,8,11", 1, false, true}, {},
              kEpilogues[0], true),
      "wrong with output padding");
  const auto& sums = kEpilogues[0];
  const auto& stored = kEpilogues[3];
  const Host multiplier{"1,7,8,8", "14,1,3,3", "groups=7", "1,14,6,6", 9},
      large{"1,100,5,5", "8,100,3,3", "", "1,8,3,3", 900}, long_rows{"3,600", "600,8", "", "3,8", 600, true};
  expect_refused(text_of(multiplier, {"i8", "i8", "3"}, stored, true), "one channel and several results");
  expect_refused(replaced(text_of(kConvolutions[0], {"u8", "u8"}, stored, true), "seed(1)", "fill(200)"),
                 "int8: weights of u8");
  expect_refused(text_of(large, {"i8"}, sums, true), "before it stores i32");
  expect_refused(text_of(large, {"u8", "i8", "3"}, sums, true), "before it stores i32");
  EXPECT_FALSE(asked(text_of(large, {"u8"}, sums, true)).offers.empty());
  expect_refused(text_of(long_rows, {"i8"}, sums, true), "before it stores i32");
  EXPECT_FALSE(asked(text_of(long_rows, {"i8"}, stored, true)).offers.empty());
  expect_refused(text_of({"7,40", "given 40,9", "", "7,9", 40, true}, {"u8", "u8"}, stored, true),
                 "int8: weights");
}

/// Scales are powers of two: nothing is rounded but the stored integers.
TEST(OnednnIntegers, a_block_of_layers_is_planned_in_8_bits) {
  const auto layer = [](const std::string& name, const std::string& call, const std::string& second) {
    return fmt::format(
        " {0} = {1} {{\n body graph (s: i32[1,64,14,14]{2}) -> (q) {{\n f = Convert(s) "
        "destination_type=f32\n m = "
        "const f32[] {{0.0009765625}}\n g = Multiply(f, m)\n{3} o = const f32[] {{1}}\n z = const u8[] "
        "{{9}}\n q "
        "= Quantize(t, o, z) destination_type=u8\n }}\n }}\n",
        name, call, second.empty() ? "" : ", p: u8[1,64,14,14]",
        second.empty()
            ? " t = Relu(g)\n"
            : " d = const f32[] {0.5}\n e = const u8[] {11}\n k = Dequantize(p, d, e)\n l = Add(g, k)\n t = "
              "Relu(l)\n");
  };
  const auto text =
      "graph (x: u8[1,64,14,14], nine: u8[1]) -> (y, c) {\n u = const i8[64,64,1,1] seed(1)\n v = const "
      "i8[64,1,3,3] "
      "seed(2)\n w = const i8[64,64,3,3] seed(3)\n n = const u8[] {9}\n" +
      layer("a", "Convolution(x, u, _, nine)", "") +
      layer("b", "Convolution(a, v, _, n) groups=64 pads_begin=[1,1] pads_end=[1,1]", "") +
      layer("c", "Convolution(b, w, _, n, _, x) pads_begin=[1,1] pads_end=[1,1]", "p") +
      " y = MaxPool(c) kernel=[2,2] strides=[2,2]\n}\n";
  auto g = parse(text);
  const auto inputs = widen(g, 5);
  const auto wanted = interpret(g, inputs);
  const auto got = run_graph(g, inputs);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(got.outputs[i].same_as(wanted[i])) << i;
  if (!multiplies_here()) return;
  for (const auto& label : got.labels) EXPECT_NE(label, "reference");
}

/// A second tensor may hold anything: what is not a number becomes 0.
TEST(OnednnIntegers, what_is_not_a_number_is_stored_as_the_reference_does) {
  if (!multiplies_here()) GTEST_SKIP() << "this processor has no VNNI";
  for (const std::string type : {"u8", "i8"})
    for (const std::string zero : {"0", "5", "6"}) {
      Epilogue e = kEpilogues[11];
      e.stored = fmt::format(
          "o = const f32[] {{1}}\n z = const {0}[] {{{1}}}\n q = Quantize(r, o, z) destination_type={0}",
          type, zero);
      const auto g = parse(text_of(kConvolutions[0], {}, e, true));
      auto inputs = random_inputs(g, 3);
      auto second = inputs[1].data<float>();
      const auto& special = special_floats();
      for (std::size_t i = 0; i < second.size(); ++i) second[i] = special[i % special.size()];
      const auto wanted = interpret(g, inputs).at(0);
      const auto id = g.order().back();
      std::size_t seen = 0;
      for (const auto& offer : ask_kernels(NodeView(g, id)).offers) {
        if (offer.kernel.find("onednn") != 0 || offer.stages < epilogue_size(g.node(id))) continue;
        ++seen;
        const std::vector<Tensor> in{inputs[0], *g.constant(g.node(id).inputs[1]), {}, {}, {}, inputs[1]};
        EXPECT_TRUE(run_offer(g, id, offer, in).at(0).same_as(wanted)) << offer.label << type << zero;
      }
      EXPECT_EQ(seen, 1u);
    }
}

}  // namespace
}  // namespace lamina::testing
