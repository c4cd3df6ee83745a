/// Empty tensors whose other dimensions are huge: every operator gives its empty result, or an error of one
/// line, at once and without the memory that those dimensions would take.
#include <chrono>
#include <limits>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// Inputs and body; # stands for a huge size, @ for about its square root.
struct Case {
  const char *inputs, *body;
};

const Case kCases[] = {
    {"x: f32[0,#]", "b = const i64[2] {0, 0}\n e = const i64[2] {0, 3}\n y = Pad(x, b, e)"},
    {"x: f32[0,1]", "b = const i64[2] {0, 0}\n e = const i64[2] {0, #}\n y = Pad(x, b, e) pad_mode=edge"},
    {"x: f32[0,#]", "s = const i64[1] {3}\n a = const i64[1] {1}\n y = Roll(x, s, a)"},
    {"x: f32[0,3]", "r = const i64[2] {1, #}\n y = Tile(x, r)"},
    {"x: f32[1,1]", "t = const i64[2] {0, #}\n y = Broadcast(x, t)"},
    {"x: f32[0,#], z: f32[0,#]", "y = Concat(x, z) axis=0"},
    {"x: f32[0,#], z: f32[0,1]", "y = Concat(x, z) axis=1"},
    {"x: f32[0,#]", "a = const i64[] {1}\n y, z = Split(x, a) num_splits=2"},
    {"x: f32[0,#]",
     "s = const i64[1] {1}\n e = const i64[1] {-1}\n t = const i64[1] {2}\n a = const i64[1] {1}\n"
     " y = Slice(x, s, e, t, a)"},
    {"x: f32[0,#]",
     "s = const i64[2] {0, -1}\n e = const i64[2] {9, 0}\n t = const i64[2] {1, -1}\n"
     " y = StridedSlice(x, s, e, t)"},
    {"x: f32[0,#], l: i64[0]", "y = ReverseSequence(x, l)"},
    {"x: f32[#,0]", "y = CumSum(x)"},
    {"x: f32[#,0]", "y = Trilu(x)"},
    {"x: i64[0], on: f32[], off: f32[]", "d = const i64[] {#}\n y = OneHot(x, d, on, off)"},
    {"x: i64[#,0], on: f32[], off: f32[]", "d = const i64[] {2}\n y = OneHot(x, d, on, off)"},
    {"", "r = const i64[] {#}\n c = const i64[] {0}\n d = const i64[] {0}\n y = Eye(r, c, d)"},
    {"", "s = const i64[2] {0, #}\n a = const f32[] {0}\n b = const f32[] {1}\n y = RandomUniform(s, a, b)"},
    {"x: f32[0,1,2,2]",
     "s = const i64[2] {#, 2}\n a = const i64[2] {2, 3}\n y = Interpolate(x, s, a) mode=linear"},
    {"x: f32[1,0,2,2]",
     "s = const i64[2] {#, 2}\n a = const i64[2] {2, 3}\n y = Interpolate(x, s, a) mode=nearest"},
    {"x: f32[#,0,3]", "a = const i64[2] {0, 1}\n y = ReduceSum(x, a)"},
    {"x: f32[0,#]", "a = const i64[2] {1, 0}\n y = ReduceMax(x, a)"},
    {"x: i64[#,0]", "a = const i64[2] {0, 1}\n y = ReduceMean(x, a)"},
    {"x: f32[#,0]", "a = const i64[2] {0, 1}\n y = ReduceL2(x, a)"},
    {"x: f32[0,#]", "a = const i64[1] {1}\n y = ReduceMin(x, a)"},
    {"x: f32[#,0]", "y = Softmax(x) axis=0"},
    {"x: f32[0,#]", "y = LogSoftmax(x) axis=1"},
    {"x: f32[0,#]", "k = const i64[] {2}\n y, z = TopK(x, k) axis=1"},
    {"x: f32[#,0]", "k = const i64[] {0}\n y, z = TopK(x, k) axis=1"},
    {"x: f32[#,0]", "y = NonZero(x)"},
    {"x: f32[0,#]", "y = Unique(x)"},
    {"x: f32[0,#]", "a = const i64[] {1}\n y = Unique(x, a)"},
    {"x: f32[0,#], s: f32[0,3]", "y = SearchSorted(s, x)"},
    {"x: f32[#,0], b: f32[3]", "y = Bucketize(x, b)"},
    {"x: f32[0,#], i: i64[0]", "a = const i64[] {0}\n y = Gather(x, i, a)"},
    {"x: f32[#,0], i: i64[0]", "a = const i64[] {1}\n y = Gather(x, i, a)"},
    {"x: f32[0,#], i: i64[0,#]", "y = GatherElements(x, i) axis=1"},
    {"x: f32[0,#], i: i64[0,2]", "y = GatherND(x, i)"},
    {"x: i32[0,@,@], p: i32[0,@,@], l: i32[@], e: i32[]", "y = GatherTree(x, p, l, e)"},
    {"x: f32[#,0], i: i64[2], u: f32[2,0]", "a = const i64[] {0}\n y = ScatterUpdate(x, i, u, a)"},
    {"x: f32[0,#], i: i64[0,2], u: f32[0,2]", "a = const i64[] {1}\n y = ScatterElementsUpdate(x, i, u, a)"},
    {"x: f32[0,#], i: i64[0,1], u: f32[0,#]", "y = ScatterNDUpdate(x, i, u)"},
    {"x: f32[0,#,2]", "o = const i64[3] {2, 1, 0}\n y = Transpose(x, o)"},
    {"x: f32[0,#]", "p = const i64[3] {#, 0, 7}\n y = Reshape(x, p)"},
    {"x: f32[0,4,#,1]", "y = DepthToSpace(x) block_size=2"},
    {"x: f32[0,1,#,2]", "y = SpaceToDepth(x) block_size=2"},
    {"x: f32[0,4,#]", "y = ShuffleChannels(x) group=2"},
    {"x: f32[0,#]", "b = const i64[2] {1, 2}\n p = const i64[2] {0, 0}\n y = SpaceToBatch(x, b, p, p)"},
    {"x: f32[0,#]", "b = const i64[2] {1, 2}\n p = const i64[2] {0, 0}\n y = BatchToSpace(x, b, p, p)"},
    {"x: f32[0,#], z: f32[0,1]", "a = Add(x, z)\n b = Exp(a)\n y = Multiply(b, x)"},
    {"x: f32[#,0], c: boolean[#,0]", "y = Select(c, x, x)"},
    {"x: f32[#,0]", "y = Convert(x) destination_type=u8"},
    {"x: f32[0,#], l: f32[], h: f32[]", "y = FakeQuantize(x, l, h, l, h) levels=256"},
    {"x: f32[0,#], s: f32[]", "y = Quantize(x, s) destination_type=u8"},
    {"x: f32[#,0,4], w: f32[4,5]", "y = MatMul(x, w)"},
    {"x: f32[3,0], w: f32[0,5]", "y = MatMul(x, w)"},
    {"x: f32[0,#], w: f32[#,0]", "y = MatMul(x, w)"},
    {"x: f32[0,3,@,@], w: f32[4,3,3,3]", "y = Convolution(x, w)"},
    {"x: f32[1,0,@,@], w: f32[2,0,@,@]", "y = Convolution(x, w)"},
    {"x: f32[0,3,@,@]", "y = MaxPool(x) kernel=[3,3] strides=[2,2]"},
    {"x: f32[0,3,@,@]", "y = AvgPool(x) kernel=[3,3] strides=[1,1]"},
    {"x: f32[1,1,4]", "y = MaxPool(x) kernel=[1000000003] strides=[1] pads_begin=[1000000000]"},
    {"x: f32[1,1,4]", "y = AvgPool(x) kernel=[1000000003] strides=[1] pads_begin=[1000000000]"},
    {"x: f32[0,3,@,@]", "s = const i64[2] {1, 1}\n y = AdaptiveAvgPool(x, s)"},
    {"x: f32[0,1,2,2]", "s = const i64[2] {#, 1}\n y, z = AdaptiveMaxPool(x, s)"},
    {"x: f32[0,#]", "a = const i64[1] {1}\n y = MVN(x, a)"},
    {"x: f32[0,#]", "a = const i64[1] {1}\n y = NormalizeL2(x, a)"},
    {"x: f32[#,0]", "a = const i64[1] {0}\n y = LRN(x, a) size=3"},
    {"x: f32[0,#]", "y = Einsum(x) equation=\"ij->\""},
    {"x: f32[0,#], z: f32[#,0]", "y = Einsum(x, z) equation=\"ij,jk->ik\""},
    {"x: f32[#,0], z: f32[0,#]", "y = Einsum(x, z) equation=\"ij,ji->\""},
    {"x: f32[0,#,2]", "a = const i64[1] {1}\n y = DFT(x, a)"},
    {"x: f32[#,0,2]", "a = const i64[2] {1, 0}\n s = const i64[2] {4, 1}\n y = DFT(x, a, s)"},
    {"x: f32[#,0]", "a = const i64[2] {0, 1}\n s = const i64[2] {1, 4}\n y = RDFT(x, a, s)"},
    {"x: f32[0,#,4], s: f32[0,2,#]", "y = NonMaxSuppression(x, s)"},
    {"x: f32[1,0,4], s: f32[1,#,0]", "y = NonMaxSuppression(x, s)"},
    {"x: f32[0,1,#,1], g: f32[0,#,1,2]", "y = GridSample(x, g)"},
};

std::string filled(std::string text, std::int64_t whole, std::int64_t root) {
  std::string out;
  for (const char c : text)
    out += c == '#' ? std::to_string(whole) : c == '@' ? std::to_string(root) : std::string(1, c);
  return out;
}

/// Reads, interprets, plans and runs the graph; an Error is an answer.
void answer(const std::string& text) {
  try {
    const auto graph = parse(text);
    std::vector<Tensor> inputs;
    for (const auto v : graph.inputs())
      inputs.emplace_back(graph.type(v).element, graph.type(v).shape.sizes());
    const auto wanted = interpret(graph, inputs);
    const auto got = run_graph(graph, inputs).outputs;
    for (std::size_t i = 0; i < wanted.size(); ++i) expect_close(got[i], wanted[i], text);
  } catch (const Error& e) {
    EXPECT_NE(e.code(), ErrorCode::internal) << text << e.what();
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << text << e.what();
  }
}

void expect_answers(std::int64_t whole, std::int64_t root) {
  for (const auto& c : kCases) {
    const auto outputs = std::string(c.body).find("y, z =") != std::string::npos ? "y, z" : "y";
    const auto text =
        filled(fmt::format("graph ({}) -> ({}) {{\n {}\n}}\n", c.inputs, outputs, c.body), whole, root);
    SCOPED_TRACE(text);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_NO_THROW(answer(text));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took.count(), 60);  // a loop over such a dimension takes hours
  }
}

TEST(Empty, beside_dimensions_that_memory_could_hold) { expect_answers(std::int64_t{1} << 29, 1 << 14); }
TEST(Empty, beside_dimensions_that_no_memory_holds) { expect_answers(std::int64_t{1} << 39, 1 << 19); }
TEST(Empty, beside_dimensions_beyond_the_limits) { expect_answers(std::int64_t{1} << 41, 1 << 21); }
TEST(Empty, beside_the_largest_dimensions) { expect_answers(INT64_MAX - 1, INT32_MAX); }

}  // namespace
}  // namespace lamina::testing
