/// Kernels run in other arenas than those that they were offered in: with fewer and with more threads, inside
/// others' loops, and several at once.
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// Large enough for threads to be worth while.
const char* const kGraphs[] = {
    "graph (x: f32[2,16,56,56]) -> (y) {\n v = const f32[96,1,3,3] seed(1)\n y = ConvolutionDepthwise(x, v) "
    "strides=[2,2] pads_begin=[1,1] pads_end=[1,1] {\n body graph (r: f32[2,96,28,28]) -> (s) {\n s = "
    "Sigmoid(r)\n }\n body graph (x: f32[2,16,56,56]) -> (t) {\n w = const f32[96,16,1,1] seed(2)\n t = "
    "Convolution(x, w)\n }\n }\n}\n",
    "graph (x: f32[1,40,30,30]) -> (y) {\n v = const u1[50,1,3,3] seed(2)\n w = const u1[50,40,1,1] seed(3)\n"
    " a = BinaryConvolution(x, w)\n y = BinaryConvolution(a, v) groups=50\n}\n",
    "graph (x: f32[2,32,40,40]) -> (y) {\n w = const f32[48,32,3,3] seed(1)\n y = Convolution(x, w) "
    "pads_begin=[1,1] pads_end=[1,1]\n}\n",
    "graph (x: f32[2,64,40,40]) -> (y) {\n w = const f32[64,1,3,3] seed(1)\n y = Convolution(x, w) "
    "groups=64\n}\n",
    "graph (x: u8[2,64,40,40]) -> (y) {\n w = const i8[64,1,3,3] seed(1)\n z = const u8[] {9}\n y = "
    "Convolution(x, w, _, z) pads_begin=[1,1] pads_end=[1,1] groups=64 {\n body graph (r: i32[2,64,40,40]) "
    "-> "
    "(q) {\n t = Convert(r) destination_type=f32\n m = const f32[1,64,1,1] seed(2)\n u = Multiply(t, m)\n p "
    "= Abs(u)\n s = const f32[] {3}\n q = Quantize(p, s) destination_type=u8\n }\n}\n}\n",
    "graph (q: f32[2,4,70,32], k: f32[2,4,90,32], v: f32[2,4,90,32], m: f32[2,1,70,90]) -> (y) {\n y = "
    "ScaledDotProductAttention(q, k, v, m)\n}\n",
    "graph (a: f32[6,60,64], b: f32[6,64,70]) -> (y) {\n y = MatMul(a, b)\n}\n",
    "graph (x: f32[2,3,40,50]) -> (y) {\n s = const i64[2] {90,71}\n a = const i64[2] {2,3}\n y = "
    "Interpolate(x, s, a) mode=linear_onnx shape_calculation_mode=sizes\n}\n",
    "graph (x: f32[40,3000]) -> (v, i) {\n k = const i64[] {5}\n v, i = TopK(x, k) axis=1\n}\n",
    "graph (x: f32[2,40,9000]) -> (y) {\n a = const i64[1] {2}\n y = MVN(x, a)\n}\n",
    "graph (x: f32[30,40,64]) -> (y) {\n a = const i64[2] {0,2}\n y = ReduceMean(x, a)\n}\n",
    "graph (x: f32[64,2000]) -> (y) {\n y = Softmax(x) axis=1\n}\n",
    "graph (x: f32[3000,2]) -> (y) {\n n = const i32[2,5] {0, 0, 1, -3, 1, 1, 2, -1, -2, 0}\n t = const "
    "f32[2] "
    "{0.5, -0.25}\n r = const i32[12] {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}\n l = const i32[4] {0, 1, 2, 3}\n "
    "v = "
    "const i32[3] {0, 1, 0}\n w = const f32[3] {1, 2, 3}\n y = TreeEnsemble(x, n, t, r, l, v, w) "
    "targets=2\n}\n",
    "graph (x: f32[2,32,40,40]) -> (y) {\n y = MaxPool(x) kernel=[3,3] strides=[2,2]\n}\n",
    "graph (x: f32[3,20,24], h: f32[3,1,32], c: f32[3,1,32]) -> (y, p, q) {\n l = const i32[3] {20,7,13}\n w "
    "= "
    "const f32[1,128,24] seed(1)\n r = const f32[1,128,32] seed(2)\n b = const f32[1,128] seed(3)\n y, p, q "
    "= "
    "LSTMSequence(x, h, c, l, w, r, b) hidden_size=32\n}\n",
    "graph (x: f32[90,3000]) -> (y, s, z) {\n y, s, z = DynamicQuantize(x)\n}\n",
    "graph (x: i8[2,32,40,40], z: i8[]) -> (y) {\n w = const i8[48,32,3,3] seed(1)\n y = Convolution(x, w, "
    "_, "
    "z) pads_begin=[1,1] pads_end=[1,1] {\n body graph (r: i32[2,48,40,40]) -> (q) {\n s = const f32[] "
    "{0.001}\n "
    "o = const u8[] {100}\n f = Convert(r) destination_type=f32\n q = Quantize(f, s, o)\n }\n }\n}\n",
    "graph (a: i8[3,90,63], b: i8[3,63,70]) -> (y) {\n y = MatMul(a, b)\n}\n",
    "graph (x: f32[60,50,70]) -> (y) {\n p = const i64[3] {2,0,1}\n t = Transpose(x, p)\n y = Exp(t)\n}\n",
};

/// Calls run(graph, node, offer, inputs, outputs) for each offer of ours, offered in an arena. An offer is
/// made once: what runs several times is a copy.
template <class Run>
void for_native_offers(const char* text, int planned, const Run& run) {
  const auto graph = parse(text);
  InterpreterOptions observe;
  observe.observe = [&](const Graph& g, NodeId id, const std::vector<Tensor>& in,
                        const std::vector<Tensor>& out) {
    tbb::task_arena arena(planned);
    auto offers = arena.execute([&] { return ask_kernels(NodeView(g, id)).offers; });
    for (const auto& offer : offers)
      if (offer.label.starts_with("native") && !offer.is_view) run(g, id, offer, in, out);
  };
  interpret(graph, random_inputs(graph, 1), observe);
}

class Arenas : public ::testing::TestWithParam<const char*> {};

TEST_P(Arenas, of_other_sizes) {
  for (const int planned : {1, 2, 5})
    for_native_offers(
        GetParam(), planned, [&](const Graph& g, NodeId id, const Offer& offer, auto& in, auto& out) {
          for (const int threads : {1, 2, 3, 16}) {
            const auto got = run_offer(g, id, Offer(offer), in, {.threads = threads});
            const auto what =
                fmt::format("{} planned for {} threads, run on {}", offer.label, planned, threads);
            for (std::size_t i = 0; i < got.size(); ++i) expect_close(got[i], out[i], what);
          }
        });
}

TEST_P(Arenas, several_at_once_inside_other_loops) {
  for_native_offers(GetParam(), 2, [&](const Graph& g, NodeId id, const Offer& offer, auto& in, auto& out) {
    std::vector<std::vector<Tensor>> got(6);
    tbb::task_arena arena(4);
    arena.execute([&] {
      tbb::parallel_for(std::size_t{0}, got.size(), [&](std::size_t i) {
        got[i] = run_offer(g, id, Offer(offer), in, {.threads = i % 2 == 0 ? 4 : 1});
      });
    });
    for (const auto& one : got)
      for (std::size_t i = 0; i < one.size(); ++i) expect_close(one[i], out[i], offer.label);
  });
}

INSTANTIATE_TEST_SUITE_P(All, Arenas, ::testing::ValuesIn(kGraphs));

}  // namespace
}  // namespace lamina::testing
