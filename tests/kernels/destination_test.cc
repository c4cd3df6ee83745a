/// Epilogues that end in another element type: every offer that takes them whole, its results dense
/// and as slices of wider channels. Sums are whole numbers, so that results are the reference's.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/random_cases.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// {} stands for the epilogue of r.
const std::string kHosts[] = {
    "graph (x: f32[2,9,11,10]) -> (y) {{\n w = const f32[21,9,3,3] seed(1)\n b = const f32[21] seed(2)\n"
    " y = Convolution(x, w, b) pads_begin=[1,1] pads_end=[1,1] {}\n}}\n",
    "graph (x: f32[1,40,9,9]) -> (y) {{\n w = const f32[70,40,1,1] seed(1)\n y = Convolution(x, w) {}\n}}\n",
    "graph (x: f32[1,12,8,7]) -> (y) {{\n w = const f32[30,4,3,3] seed(1)\n"
    " y = Convolution(x, w) strides=[2,2] groups=3 {}\n}}\n",
    "graph (x: f32[1,3,20,20]) -> (y) {{\n w = const f32[2,3,5,5] seed(1)\n y = Convolution(x, w) {}\n}}\n",
    "graph (x: f32[1,500,4,5]) -> (y) {{\n w = const f32[24,500,3,3] seed(1)\n y = Convolution(x, w) "
    "{}\n}}\n",
    "graph (x: f32[1,37,19,14]) -> (y) {{\n w = const f32[37,1,3,3] seed(1)\n"
    " y = Convolution(x, w) groups=37 pads_begin=[1,1] pads_end=[1,1] {}\n}}\n",
    "graph (x: f32[1,10,6,6]) -> (y) {{\n w = const f32[10,19,3,3] seed(1)\n"
    " y = ConvolutionBackpropData(x, w) strides=[2,2] {}\n}}\n",
    "graph (x: f32[1,10,6,6]) -> (y) {{\n w = const f32[10,8,2,2] seed(1)\n"
    " y = ConvolutionBackpropData(x, w) strides=[2,2] {}\n}}\n",
    "graph (x: f32[33,50]) -> (y) {{\n w = const f32[50,75] seed(1)\n y = MatMul(x, w) {}\n}}\n",
    "graph (x: f32[2,5,37], w: f32[2,37,53]) -> (y) {{\n y = MatMul(x, w) {}\n}}\n",
    "graph (x: f32[3,37], w: f32[37,53]) -> (y) {{\n y = MatMul(x, w) {}\n}}\n",
    "graph (x: f32[2,9,40], w: f32[2,3,40]) -> (y) {{\n y = MatMul(x, w) transpose_b=true {}\n}}\n",
    "graph (x: f32[1,6500], w: f32[6500,20]) -> (y) {{\n y = MatMul(x, w) {}\n}}\n",
    "graph (x: f32[1,70,10,9]) -> (y) {{\n w = const f32[40,70,3,3] seed(1)\n"
    " y = BinaryConvolution(x, w) pads_begin=[1,1] pads_end=[1,1] mode=\"xnor-popcount\" {}\n}}\n",
    "graph (x: f32[1,40,10,9]) -> (y) {{\n w = const f32[40,1,3,3] seed(1)\n"
    " y = BinaryConvolution(x, w) groups=40 mode=\"xnor-popcount\" {}\n}}\n",
    // For several threads.
    "graph (x: f32[2,64,28,28]) -> (y) {{\n w = const f32[96,64,1,1] seed(1)\n y = Convolution(x, w) "
    "{}\n}}\n",
    "graph (x: f32[1,64,80,80]) -> (y) {{\n w = const f32[64,1,3,3] seed(1)\n"
    " y = Convolution(x, w) groups=64 {}\n}}\n",
    "graph (x: f32[400,90], w: f32[90,301]) -> (y) {{\n y = MatMul(x, w) {}\n}}\n",
    "graph (x: f32[1,32,30,40]) -> (y) {{\n w = const f32[48,32,3,3] seed(1)\n"
    " y = BinaryConvolution(x, w) mode=\"xnor-popcount\" {}\n}}\n",
    "graph (x: f32[1,20,30,21]) -> (y) {{\n v = const f32[36,1,3,3] seed(2)\n"
    " y = ConvolutionDepthwise(x, v) {}\n}}\n"};

/// What runs before the windows of the last of them.
const std::string kBefore =
    " body graph (x: f32[1,20,30,21]) -> (t) {\n w = const f32[36,20,1,1] fill(1)\n t = Convolution(x, w)\n "
    "}\n";

const std::string kStages[] = {
    "q = Convert(r) destination_type=u8",
    "t = Relu(r)\n q = Convert(t) destination_type=i8",
    "q = Convert(r) destination_type=f16",
    "h = const f32[] {0.5}\n t = Multiply(r, h)\n q = Convert(t) destination_type=bf16",
    "q = Convert(r) destination_type=i32",
    "q = Convert(r) destination_type=i64",
    "limit = const f32[] {1}\n q = Greater(r, limit)",
    "s = const f32[] {3}\n z = const u8[] {7}\n"
    " q = Quantize(r, s, z) destination_type=u8"};

/// Constants and inputs become whole numbers.
Tensor rounded(const Tensor& t) {
  Tensor out = t.to_aligned().clone();
  if (t.element_type() == ElementType::f32)
    for (auto& v : out.data<float>()) v = std::nearbyint(v * 4);
  return out;
}

void round_constants(Graph& graph) {
  for (std::uint32_t i = 0, count = static_cast<std::uint32_t>(graph.value_slots()); i < count; ++i)
    if (const auto* constant = graph.constant(ValueId{i}))
      graph.replace(ValueId{i}, graph.add_constant(rounded(*constant)));
}

Graph graph_of(const std::string& host, const std::string& stages) {
  // The type of r is that of the host without an epilogue.
  const bool pair = host.find("ConvolutionDepthwise") != std::string::npos;
  const auto body = [&](const std::string& type, const std::string& nodes) {
    return fmt::format("{{\n body graph (r: {}) -> (q) {{\n {}\n }}\n{} }}", type, nodes,
                       pair ? kBefore : "");
  };
  const auto y = pair ? std::string("f32[1,36,28,19]") : [&] {
    const auto bare = parse(fmt::format(fmt::runtime(host), ""));
    return fmt::format("f32[{}]", fmt::join(bare.type(bare.results()[0].value).shape.sizes(), ","));
  }();
  return parse(fmt::format(fmt::runtime(host), body(y, stages)));
}

/// The offer run into a slice of wider channels.
Tensor run_wide(const Offer& offer, const std::vector<Tensor>& in, const TensorType& type) {
  const auto dims = type.shape.sizes();
  const std::int64_t channels = dims[1], pixels = static_cast<std::int64_t>(element_count(dims)) / channels,
                     row = channels + 3, bytes = bits_of(type.element) / 8;
  std::vector<std::byte> wide(static_cast<std::size_t>(pixels * row * bytes), std::byte{7});
  Tensor scratch(ElementType::u8, {static_cast<std::int64_t>(offer.scratch)});
  ModelWeights weights;
  MakeContext context{weights, {}, {row}};
  const auto code = offer.make(context);
  const auto step = code->step();
  std::vector<Tensor> laid;
  std::vector<const void*> from;
  for (std::size_t i = 0; i < in.size(); ++i) {
    laid.push_back(laid_out(in[i], offer.inputs[i]));
    from.push_back(laid.back().raw());
  }
  void* to[] = {wide.data()};
  step->bind({from.data(), to, scratch.raw()});
  step->run();
  Tensor got(type.element, dims);
  for (std::int64_t p = 0; p < pixels; ++p) {
    const auto* point = wide.data() + p * row * bytes;
    std::memcpy(got.raw() + p * channels * bytes, point, static_cast<std::size_t>(channels * bytes));
    for (auto i = channels * bytes; i < row * bytes; ++i)
      EXPECT_EQ(point[i], std::byte{7}) << offer.label << " writes beside the slice";
  }
  return plain_of(got, type.element, dims, Layout::channels_last);
}

TEST(Destinations, are_the_reference_s) {
  for (const auto& host : kHosts)
    for (const auto& stages : kStages) {
      SCOPED_TRACE(host + stages);
      auto g = graph_of(host, stages);
      round_constants(g);
      std::vector<Tensor> inputs;
      for (const auto& x : random_inputs(g, 5)) inputs.push_back(rounded(x));
      const auto id = g.order().at(0);
      const auto result = g.results()[0].value;
      const auto wanted = interpret(g, inputs).at(0);
      const auto in = tensors_of(g, id, inputs);
      std::size_t whole = 0;
      const auto ask = [&] { return ask_kernels(NodeView(g, id)).offers; };  // each is made once
      for (std::size_t i = 0; i < ask().size(); ++i) {
        const auto offer = ask()[i];
        if (offer.last_resort || offer.stages < epilogue_size(g.node(id))) continue;
        SCOPED_TRACE(offer.label);
        whole += offer.label.starts_with("native");
        for (const int threads : {1, 2})
          expect_close(run_offer(g, id, ask()[i], in, {.threads = threads}).at(0), wanted, "dense");
        if (!offer.wide_outputs.empty()) expect_close(run_wide(offer, in, g.type(result)), wanted, "a slice");
      }
      EXPECT_GT(whole, 0u);
    }
}

/// Rules make such nodes, and plans join what two of them make.
TEST(Destinations, are_joined_in_place) {
  for (const std::string to : {"u8", "f16", "i32"}) {
    auto g =
        parse(fmt::format("graph (x: f32[1,24,20,20]) -> (y) {{\n w = const f32[24,1,3,3] seed(1)\n"
                          " v = const f32[40,24,1,1] seed(2)\n"
                          " c = Convolution(x, w) groups=24 pads_begin=[1,1] pads_end=[1,1]\n"
                          " a = Convert(c) destination_type={0}\n d = Convolution(x, v)\n"
                          " b = Convert(d) destination_type={0}\n y = Concat(a, b) axis=1\n}}\n",
                          to));
    round_constants(g);
    const std::vector<Tensor> inputs{rounded(random_inputs(g, 3).at(0))};
    EXPECT_TRUE(run_graph(g, inputs).outputs.at(0).same_as(interpret(g, inputs).at(0))) << to;
  }
}

}  // namespace
}  // namespace lamina::testing
