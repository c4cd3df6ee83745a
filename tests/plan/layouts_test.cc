/// Layouts that kernels add to the table.
#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/activation.h"
#include "ops/pooling.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

constexpr std::int64_t kBlock = 8;

/// Calls visit(plain element, element in memory): channels in blocks of 8, the last one filled up.
template <class Visit>
void for_blocks(const Dims& shape, const Visit& visit) {
  const auto channels = shape[1], blocks = (channels + kBlock - 1) / kBlock;
  const auto points = static_cast<std::int64_t>(element_count(shape)) / (shape[0] * channels);
  for (std::int64_t n = 0, at = 0; n < shape[0]; ++n)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t p = 0; p < points; ++p, ++at)
        visit(at, ((n * blocks + c / kBlock) * points + p) * kBlock + c % kBlock);
}

std::size_t bytes_of(ElementType, const Dims& shape) {
  const auto channels = static_cast<std::size_t>(shape[1]);
  return element_count(shape) / channels * ((channels + kBlock - 1) / kBlock * kBlock) * 4;
}

/// f32 in blocks of channels; `copied`: plans may copy from plain and to it.
Layout blocks(const std::string& name, bool copied) {
  PackedLayout packed;
  packed.takes = [](ElementType type, const Dims& shape) {
    return type == ElementType::f32 && shape.size() > 2 && element_count(shape) != 0;
  };
  packed.bytes = bytes_of;
  packed.pack = [](ElementType type, const Dims& shape, const void* from, void* to) {
    std::fill_n(static_cast<float*>(to), bytes_of(type, shape) / 4, 0.0f);
    for_blocks(shape,
               [&](auto a, auto b) { static_cast<float*>(to)[b] = static_cast<const float*>(from)[a]; });
  };
  packed.unpack = [](ElementType, const Dims& shape, const void* from, void* to) {
    for_blocks(shape,
               [&](auto a, auto b) { static_cast<float*>(to)[a] = static_cast<const float*>(from)[b]; });
  };
  packed.copied = copied;
  return add_layout(
      {name, info_of(Layout::plain).order, std::make_shared<const PackedLayout>(std::move(packed))});
}

/// A Relu that costs nothing in that layout.
class CheapRelu {
 public:
  explicit CheapRelu(Layout layout) {
    add_kernel({"test.relu", [](const Op& op) { return op.is<Relu>(); },
                [layout](const NodeView& v, Answers& answers) {
                  const auto* packing = packing_of(layout);
                  if (packing && !packing->takes(v.element(0), v.dims(0))) return;
                  Offer o(v, "cheap_relu", layout);
                  o.make = [count = memory_bytes(v.element(0), v.dims(0), layout) / 4](MakeContext&) {
                    return executable([count](const RunArgs& args) {
                      for (std::size_t i = 0; i < count; ++i)
                        static_cast<float*>(args.out[0])[i] =
                            std::max(static_cast<const float*>(args.in[0])[i], 0.0f);
                    });
                  };
                  answers.offers.push_back(std::move(o));
                }});
  }
  ~CheapRelu() { remove_kernel("test.relu"); }
};

std::vector<std::string> labels_of(const std::string& text, std::vector<std::string> force = {}) {
  const auto g = parse(text);
  const auto inputs = random_inputs(g, 3);
  ProgramOptions options;
  options.force = std::move(force);
  Runner runner(std::make_shared<Program>(g, options, std::make_shared<ModelWeights>()));
  for (std::size_t i = 0; i < inputs.size(); ++i) runner.set_input(i, inputs[i]);
  runner.run();
  const auto wanted = interpret(g, inputs);
  for (std::size_t r = 0; r < wanted.size(); ++r) expect_close(runner.output(r), wanted[r], text);
  check_all_offers(parse(text), 3);
  std::vector<std::string> out;
  for (const auto& plan : runner.plans())
    for (const auto& step : plan->steps) out.push_back(step.label);
  return out;
}

constexpr const char* kChain =
    "graph (x: f32[2,11,40,50]) -> (y) {\n a = Relu(x)\n b = Relu(a)\n y = Relu(b)\n}\n";

TEST(Layouts, of_a_kernel_are_copied_to_and_from) {
  static const Layout layout = blocks("blocks_of_8", true);
  EXPECT_EQ(layout_named("blocks_of_8"), layout);
  const CheapRelu kernel(layout);
  EXPECT_EQ(labels_of(kChain, {"Relu=cheap_relu"}),
            (std::vector<std::string>{"reorder_plain_to_blocks_of_8", "cheap_relu", "cheap_relu",
                                      "cheap_relu", "reorder_blocks_of_8_to_plain"}));
  // Add, one copy for both that read it, three times Relu, and results are plain.
  EXPECT_EQ(
      labels_of("graph (x: f32[1,8,3,3]) -> (y, z) {\n c = const f32[1,8,3,3] seed(1)\n a = Add(x, c)\n b = "
                "Relu(a)\n y = Relu(b)\n z = Relu(a)\n}\n",
                {"Relu=cheap_relu"})
          .size(),
      7u);
  EXPECT_EQ(recipe_of("test.relu blocks_of_8 -> blocks_of_8 all cheap_relu").inputs[0], layout);
}

TEST(Layouts, that_nothing_copies_stay_between_kernels) {
  static const Layout layout = blocks("closed_blocks", false);
  const CheapRelu kernel(layout);
  for (const auto& label : labels_of(kChain)) EXPECT_NE(label, "cheap_relu");  // x and y are plain
}

/// Stages know where elements of plain and of channels-last tensors lie.
TEST(Layouts, of_a_kernel_are_nothing_for_later_stages) {
  static const Layout layout = blocks("blocks_before_stages", true);
  add_kernel({"test.pool", [](const Op& op) { return op.is<MaxPool>(); },
              [](const NodeView& v, Answers& answers) {
                Offer o(v, "cheap_pool", Layout::plain);
                o.inputs[0] = o.outputs[0] = layout;
                o.stages = 0;
                o.make = [count = bytes_of(v.element(0), v.dims(0)) / 4](MakeContext&) {
                  return executable([count](const RunArgs& args) {
                    std::copy_n(static_cast<const float*>(args.in[0]), count,
                                static_cast<float*>(args.out[0]));
                  });
                };
                answers.offers.push_back(std::move(o));
              }});
  const auto labels = labels_of(
      "graph (x: f32[2,11,4,5], z: f32[2,11,4,5]) -> (y) {\n y = MaxPool(x, z) kernel=[1,1] strides=[1,1] "
      "{\n "
      "body graph (r: f32[2,11,4,5], e: f32[2,11,4,5]) -> (q) {\n t = Erf(r)\n q = Add(t, e)\n }\n }\n}\n",
      {"MaxPool=cheap_pool"});
  remove_kernel("test.pool");
  EXPECT_NE(std::find(labels.begin(), labels.end(), "cheap_pool"), labels.end());
}

TEST(Layouts, have_names_of_their_own) {
  for (const auto* name : {"plain", "", "two words", "a,b"})
    EXPECT_THROW(add_layout({name, info_of(Layout::plain).order}), Error) << name;
  EXPECT_EQ(layout_named("nonsense"), std::nullopt);
}

Layout reversed_axes() {
  static const Layout reversed = add_layout({"reversed", [](std::size_t rank) {
                                               std::vector<std::size_t> order;
                                               while (rank-- > 0) order.push_back(rank);
                                               return order;
                                             }});
  return reversed;
}

TEST(Layouts, at_strides_need_no_more_than_an_order) {
  const auto reversed = reversed_axes();
  EXPECT_EQ(strides_of({2, 3, 4}, reversed), (Dims{1, 2, 6}));
  EXPECT_FALSE(same_bytes({2, 3, 4}, Layout::plain, reversed));
  EXPECT_TRUE(same_bytes({1, 3, 1}, Layout::plain, reversed));
  const auto x = seeded_tensor(ElementType::f32, {2, 3, 4}, 1);
  EXPECT_TRUE(plain_of(laid_out(x, reversed), x.element_type(), x.shape(), reversed).same_as(x));
}

TEST(Layouts, at_strides_are_copied_to_and_from) {
  const CheapRelu kernel(reversed_axes());
  const std::vector<std::string> copied{"reorder_plain_to_reversed", "cheap_relu", "cheap_relu", "cheap_relu",
                                        "reorder_reversed_to_plain"};
  EXPECT_EQ(labels_of(kChain, {"Relu=cheap_relu"}), copied);
  // With two axes as well; an axis of the same size either way costs nothing.
  const auto chain = [](const char* shape) {
    return fmt::format("graph (x: f32[{}]) -> (y) {{\n a = Relu(x)\n b = Relu(a)\n y = Relu(b)\n}}\n", shape);
  };
  EXPECT_EQ(labels_of(chain("40,50"), {"Relu=cheap_relu"}), copied);
  EXPECT_EQ(labels_of(chain("1,50"), {"Relu=cheap_relu"}),
            (std::vector<std::string>{"cheap_relu", "cheap_relu", "cheap_relu"}));
}

/// A part of a whole lies elsewhere in each of them.
TEST(Layouts, of_parts_that_are_made_in_their_place) {
  for (const auto layout : {reversed_axes(), blocks("blocks_of_parts", true)}) {
    const CheapRelu kernel(layout);
    for (const auto* axis : {"1", "2"})
      labels_of(
          fmt::format("graph (x: f32[2,8,6,3], z: f32[2,8,6,3]) -> (y) {{\n a = Relu(x)\n b = Relu(z)\n "
                      "c = Concat(a, b) axis={}\n y = Relu(c)\n}}\n",
                      axis),
          {"Relu=cheap_relu"});
  }
}

}  // namespace
}  // namespace lamina::testing
