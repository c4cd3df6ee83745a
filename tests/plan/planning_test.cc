/// What planning takes depends on the graph, not on how large the batch is.
#include <tbb/task_arena.h>

#include "tests/support/allocations.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// N stands for the batch, for the depth of a convolved volume, or for the length of a picture.
const char* const kGraphs[] = {
    "graph (x: f32[N,16,8,8]) -> (y) {\n w = const f32[24,16,3,3] seed(1)\n y = Convolution(x, w) "
    "pads_begin=[1,1] pads_end=[1,1]\n}\n",
    "graph (x: f32[1,3,N,3,3]) -> (y) {\n w = const f32[8,3,3,3,3] seed(1)\n y = Convolution(x, w) "
    "pads_begin=[1,1,1] pads_end=[1,1,1] strides=[1,1,1] dilations=[1,1,1]\n}\n",
    "graph (x: f32[1,3,N,3]) -> (y) {\n s = const f32[1] {20}\n a = const i64[1] {2}\n y = "
    "Interpolate(x, s, a) mode=linear shape_calculation_mode=scales\n}\n",
    "graph (x: f32[N,16,8,8]) -> (y) {\n w = const f32[24,16,1,1] seed(1)\n y = Convolution(x, w)\n}\n",
    "graph (x: f32[N,3,8,8]) -> (y) {\n w = const f32[24,3,3,3] seed(1)\n y = Convolution(x, w)\n}\n",
    "graph (x: f32[N,16,8,8]) -> (y) {\n w = const f32[16,1,3,3] seed(1)\n y = Convolution(x, w) "
    "groups=16\n}\n",
    "graph (x: f32[N,16,5,5]) -> (y) {\n w = const f32[16,8,2,2] seed(1)\n y = ConvolutionBackpropData(x, w) "
    "strides=[2,2]\n}\n",
    "graph (x: f32[N,16,12,12]) -> (y) {\n v = const f32[32,1,3,3] seed(1)\n y = ConvolutionDepthwise(x, v) "
    "{\n body graph (r: f32[N,32,10,10]) -> (r) {\n }\n body graph (x: f32[N,16,12,12]) -> (t) {\n w = const "
    "f32[32,16,1,1] seed(2)\n t = Convolution(x, w)\n }\n }\n}\n",
    "graph (x: f32[N,40,8,8]) -> (y) {\n w = const u1[50,40,3,3] seed(1)\n y = BinaryConvolution(x, w)\n}\n",
    "graph (x: f32[N,40]) -> (y) {\n w = const f32[40,30] seed(1)\n y = MatMul(x, w)\n}\n",
    "graph (x: f32[N,700]) -> (y) {\n w = const f32[700,30] seed(1)\n y = MatMul(x, w)\n}\n",
    "graph (a: f32[N,3,7,9], b: f32[N,1,9,5]) -> (y) {\n y = MatMul(a, b)\n}\n",
    "graph (q: f32[N,2,7,8], k: f32[N,2,9,8], v: f32[N,2,9,8], m: f32[N,1,1,9]) -> (y) {\n y = "
    "ScaledDotProductAttention(q, k, v, m)\n}\n",
    "graph (x: f32[N,8,7]) -> (y) {\n a = const i64[1] {1}\n y = ReduceSum(x, a)\n}\n",
    "graph (x: f32[N,8,7]) -> (y) {\n a = const i64[1] {2}\n y = ReduceMax(x, a)\n}\n",
    "graph (x: f32[N,8,7]) -> (y) {\n a = const i64[2] {0,2}\n y = ReduceMean(x, a)\n}\n",
    "graph (x: f32[N,8,6,6]) -> (y) {\n a = const i64[2] {2,3}\n y = ReduceMean(x, a) keep_dims=true\n}\n",
    "graph (x: f32[N,8,6,6]) -> (y) {\n y = MaxPool(x) kernel=[2,2] strides=[2,2]\n}\n",
    "graph (x: f32[N,8,6,6]) -> (y) {\n y = AvgPool(x) kernel=[3,3] exclude-pad=true\n}\n",
    "graph (x: f32[N,8,6,6]) -> (y) {\n s = const i64[2] {9,11}\n a = const i64[2] {2,3}\n y = "
    "Interpolate(x, "
    "s, a) mode=linear_onnx shape_calculation_mode=sizes\n}\n",
    "graph (x: f32[N,9]) -> (y) {\n y = Softmax(x) axis=1\n}\n",
    "graph (x: f32[N,9,16]) -> (y) {\n a = const i64[1] {2}\n y = MVN(x, a)\n}\n",
    "graph (x: f32[N,9,16]) -> (y) {\n p = const i64[3] {2,0,1}\n y = Transpose(x, p)\n}\n",
    "graph (x: f32[N,9,16]) -> (y) {\n i = const i64[3] {7,0,4}\n a = const i64[] {1}\n y = Gather(x, i, "
    "a)\n}\n",
    "graph (x: f32[N,9], u: f32[N,2]) -> (y) {\n i = const i64[2] {7,0}\n a = const i64[] {1}\n y = "
    "ScatterUpdate(x, i, u, a)\n}\n",
    "graph (x: f32[N,9], z: f32[N,1]) -> (y) {\n t = Add(x, z)\n y = Sigmoid(t)\n}\n",
    "graph (x: f32[N,9]) -> (v, i) {\n k = const i64[] {3}\n v, i = TopK(x, k) axis=1\n}\n",
    "graph (x: f32[N,9], z: f32[N,4]) -> (y) {\n y = Concat(x, z) axis=1\n}\n",
    "graph (x: f32[N,5,24], h: f32[N,1,32], c: f32[N,1,32], l: i32[N]) -> (y, p, q) {\n w = const "
    "f32[1,128,24] seed(1)\n r = const f32[1,128,32] seed(2)\n b = const f32[1,128] seed(3)\n y, p, q = "
    "LSTMSequence(x, h, c, l, w, r, b) hidden_size=32\n}\n",
};

std::string with_batch(std::string text, const std::string& batch) {
  for (const char* n : {"[N", ",N"})
    for (std::size_t at; (at = text.find(n)) != std::string::npos;) text.replace(at + 1, 1, batch);
  return text;
}

/// Bytes that are asked for to offer kernels, choose, and make a plan.
std::size_t bytes_of_planning(const std::string& text) {
  const auto graph = parse(text);
  tbb::task_arena arena(2);
  allocations::forget_counted();
  allocations::count(true);
  arena.execute([&] {
    ModelWeights weights;
    make_plan(graph, weights, {.threads = 2});
  });
  allocations::count(false);
  return allocations::counted_bytes();
}

TEST(Planning, takes_as_much_memory_for_a_million_as_for_one) {
  if (!allocations::kAll) GTEST_SKIP() << "not under sanitizers";
  for (const std::string text : kGraphs) {
    SCOPED_TRACE(text);
    const auto one = with_batch(text, "1"), million = with_batch(text, "1000000");
    bytes_of_planning(one);  // what stays for ever
    const auto few = bytes_of_planning(one), many = bytes_of_planning(million);
    EXPECT_LE(many, few + few / 2 + (1 << 20)) << "for a million, " << few << " bytes for one";
  }
}

}  // namespace
}  // namespace lamina::testing
