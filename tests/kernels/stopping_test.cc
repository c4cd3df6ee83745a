/// Long parts of kernels ask whether they must stop (base/cancellation.h).
#include <gtest/gtest.h>

#include "tests/support/counting_signal.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

struct LongNode {
  std::string text, kernel;  ///< the label begins so
  int questions;             ///< at least
};

/// Questions do not depend on how long something takes. Each kernel has one unit of work here.
TEST(Stopping, long_units_of_native_kernels) {
  for (const auto& node : std::vector<LongNode>{
           {"graph (x: f64[1,1,300,300]) -> (y) {\n y = MaxPool(x) kernel=[20,20]\n}\n", "native_maxpool_f64",
            100},
           {"graph (x: f32[1,1,300,300]) -> (y, i) {\n y, i = MaxPool(x) kernel=[20,20]\n}\n",
            "native_maxpool_f32", 100},
           {"graph (x: f32[1,1,1000,1000]) -> (y) {\n y = MaxPool(x) kernel=[1000,500]\n}\n",
            "native_maxpool_", 6},
           {"graph (x: f32[1,1,1000,1000]) -> (y) {\n y = AvgPool(x) kernel=[1000,500]\n}\n",
            "native_avgpool_", 6},
           {"graph (x: u8[1,16,200,1000]) -> (y) {\n y = MaxPool(x) kernel=[200,500]\n}\n", "native_maxpool_",
            6},
           {"graph (x: f32[1,300000]) -> (v, i) {\n k = const i64[] {100000}\n v, i = TopK(x, k) axis=1\n}\n",
            "native_topk", 20},
           {"graph (x: i8[1,1000000]) -> (v, i) {\n k = const i64[] {1}\n v, i = TopK(x, k) axis=1\n}\n",
            "native_topk", 12},
           {"graph (q: f32[1,1,20000,32], k: f32[1,1,20000,32], v: f32[1,1,20000,64], s: f32[1,1,32,64]) -> "
            "(y, t) {\n y, t = LinearAttention(q, k, v, s)\n}\n",
            "native_linear_attention_", 50}}) {
    SCOPED_TRACE(node.text);
    const auto graph = parse(node.text);
    const auto id = graph.order().back();
    const auto inputs = random_inputs(graph, 1);
    std::vector<Tensor> in;
    for (const auto v : graph.node(id).inputs) {
      const auto place = std::ranges::find(graph.inputs(), v);
      in.push_back(place != graph.inputs().end()
                       ? inputs[static_cast<std::size_t>(place - graph.inputs().begin())]
                       : *graph.constant(v));
    }
    int found = 0;
    for (const auto& offer : ask_kernels(NodeView(graph, id)).offers) {
      if (!offer.label.starts_with(node.kernel)) continue;
      ++found;
      const CountingSignal signal;
      run_stoppable({.signal = &signal}, [&] { return run_offer(graph, id, offer, in); });
      EXPECT_GE(signal.asked(), node.questions) << offer.label;
      const CountingSignal stops(signal.asked() / 2);
      EXPECT_THROW(run_stoppable({.signal = &stops}, [&] { return run_offer(graph, id, offer, in); }), Error);
    }
    EXPECT_GT(found, 0);
  }
}

}  // namespace
}  // namespace lamina::testing
