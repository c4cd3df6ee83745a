/// Offers as data: recipes as text, kernels made from them, kernels that come while the program runs.
#include "base/error.h"
#include "ops/activation.h"
#include "plan/weight_store.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

std::vector<Graph> nodes() {
  std::vector<Graph> out;
  for (const auto* text :
       {"graph (x: f32[1,8,6,6]) -> (y) {\n w = const f32[8,8,3,3] seed(1)\n y = Convolution(x, w)\n}\n",
        "graph (x: f32[1,8,6,6]) -> (y) {\n w = const f32[8,1,3,3] seed(1)\n y = Convolution(x, w) "
        "groups=8\n}\n",
        "graph (x: f32[5,8]) -> (y) {\n w = const f32[8,7] seed(1)\n y = MatMul(x, w)\n}\n",
        "graph (x: f32[1,8,6,6]) -> (y) {\n y = Relu(x)\n}\n",
        "graph (x: f32[1,8,6,6]) -> (y) {\n y = Softmax(x) axis=1\n}\n"})
    out.push_back(parse(text));
  return out;
}

TEST(Recipe, is_text_and_back) {
  for (const auto& g : nodes())
    for (const auto& offer : ask_kernels(NodeView(g, g.order()[0])).offers) {
      const Recipe& recipe = offer;
      EXPECT_EQ(recipe_of(to_text(recipe)), recipe) << to_text(recipe);
      EXPECT_FALSE(recipe.kernel.empty());
    }
  for (const auto* text : {"", "a", "a b -> c all d", "a plain -> plain all ", "a plain plain all d",
                           "a plain -> plain -1 d", "a plain,-> plain all d"})
    EXPECT_THROW(recipe_of(text), Error) << text;
}

TEST(Recipe, makes_the_kernel_again) {
  for (const auto& g : nodes()) {
    const NodeView view(g, g.order()[0]);
    const auto input = random_inputs(g, 1)[0];
    for (auto& offer : ask_kernels(view).offers) {
      if (offer.is_view || offer.outputs[0] != Layout::plain || offer.inputs[0] != Layout::plain) continue;
      const auto result = [&](std::unique_ptr<Executable> code) {
        Tensor out(ElementType::f32, view.out_dims());
        std::vector<std::byte> scratch(offer.scratch + 64);
        const Tensor* weights = view.constant(1);
        const bool consumed =
            std::find(offer.consumed.begin(), offer.consumed.end(), 1u) != offer.consumed.end();
        const void* in[] = {input.raw(), weights && !consumed ? weights->raw() : nullptr};
        void* to = out.raw();
        const auto step = code->step();
        void* space = scratch.data();
        std::size_t room = scratch.size();
        step->bind({in, &to, std::align(64, offer.scratch, space, room)});
        step->run();
        return out;
      };
      ModelWeights weights;
      MakeContext first{weights}, second{weights};
      expect_close(result(offer_of(view, recipe_of(to_text(offer))).make(second)), result(offer.make(first)),
                   offer.label);
    }
  }
}

TEST(Recipe, of_what_is_not_offered) {
  const auto g = nodes()[0];
  const NodeView view(g, g.order()[0]);
  auto recipe = recipe_of(to_text(ask_kernels(view).offers.at(0)));
  recipe.label = "nonsense";
  EXPECT_THROW(offer_of(view, recipe), Error);
  recipe.kernel = "nobody's.kernel";
  EXPECT_THROW(offer_of(view, recipe), Error);
}

/// Says 7 for everything.
void offer_seven(const NodeView& v, Answers& answers) {
  Offer o(v, "seven", Layout::plain);
  o.make = [count = element_count(v.out_dims())](MakeContext&) {
    return executable(
        [count](const RunArgs& args) { std::fill_n(static_cast<float*>(args.out[0]), count, 7.0f); });
  };
  answers.offers.push_back(std::move(o));
}

TEST(Registry, kernels_come_and_go) {
  const auto before = kernels();
  add_kernel({"test.seven", [](const Op& op) { return op.is<Relu>(); }, offer_seven});
  EXPECT_EQ(kernels()->size(), before->size() + 1);
  EXPECT_EQ(kernels()->back().name, "reference");
  EXPECT_THROW(add_kernel({"test.seven", nullptr, nullptr}), Error);
  const auto g = parse("graph (x: f32[3]) -> (y) {\n y = Relu(x)\n}\n");
  ModelWeights weights;
  const auto plan = make_plan(g, weights, {.force = {"Relu=seven"}});
  EXPECT_EQ(plan->steps.at(0).label, "seven");
  remove_kernel("test.seven");
  EXPECT_EQ(kernels()->size(), before->size());
  EXPECT_NE(make_plan(g, weights)->steps.at(0).label, "seven");
  EXPECT_EQ(plan->steps.at(0).label, "seven");  // what was planned stays
}

}  // namespace
}  // namespace lamina::testing
