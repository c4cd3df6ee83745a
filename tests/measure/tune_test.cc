/// Kernels chosen by measuring.
#include "measure/tune.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "kernels/kernel.h"
#include "ops/activation.h"
#include "tests/api/small_models.h"

namespace lamina {
namespace {

using namespace lamina::testing;

/// A kernel for Tanh that says it takes less time than all others, and takes a long one.
class Liar {
 public:
  Liar() {
    add_kernel({"test.liar", [](const Op& op) { return op.is<Tanh>(); },
                [](const NodeView& v, Answers& answers) {
                  Offer o(v, "liar", Layout::plain);
                  o.cost = answers.offers.at(0).cost;
                  for (const auto& other : answers.offers) o.cost = std::min(o.cost, other.cost);
                  o.cost *= 0.9;
                  o.make = [count = element_count(v.out_dims())](MakeContext&) {
                    return executable([count](const RunArgs& args) {
                      std::this_thread::sleep_for(std::chrono::milliseconds(3));
                      for (std::size_t i = 0; i < count; ++i)
                        static_cast<float*>(args.out[0])[i] =
                            std::tanh(static_cast<const float*>(args.in[0])[i]);
                    });
                  };
                  answers.offers.push_back(std::move(o));
                }});
  }
  ~Liar() { remove_kernel("test.liar"); }
};

IrText network(const std::string& shape) {
  IrText ir;
  const int x = ir.parameter("x", shape);
  ir.result({ir.layer("Tanh", "opset1", "", {{x}})});
  return ir;
}

TEST(Tune, what_is_right_stays) {
  const auto model = model_of(network("1,64"));
  const auto x = Tensor::of<float>({1, 64}, std::vector<float>(64, 0.5f));
  for (const auto& forced : measured_overrides(model, {.threads = 1}, {x}))
    EXPECT_EQ(forced.find("liar"), std::string::npos) << forced;
}

TEST(Tune, a_kernel_that_lies_is_found_out) {
  const Liar liar;
  const auto model = model_of(network("1,64"));
  const auto x = Tensor::of<float>({1, 64}, std::vector<float>(64, 0.5f));
  const Options options{.threads = 1};
  const auto overrides = measured_overrides(model, options, {x});
  ASSERT_EQ(overrides.size(), 1u);
  EXPECT_EQ(overrides[0].find("liar"), std::string::npos) << overrides[0];
  Options with = options;
  with.force = overrides;
  const auto y = CompiledModel(model, with)(x);
  EXPECT_NEAR(y.data<float>()[0], std::tanh(0.5f), 1e-6);
}

}  // namespace
}  // namespace lamina
