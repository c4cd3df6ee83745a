/// oneDNN's products of u8 and i8 with exact i32 sums, and the epilogues of quantised networks behind them:
/// every offer of oneDNN against the interpreter, over the whole range of the operands.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/native_offers.h"
#include "tests/kernels/onednn_integer_nodes.h"

namespace lamina::testing {
namespace {

/// Integers may be one step apart beside a tie.
void expect_stored(const Tensor& got, const Tensor& wanted, const Tensor& floats, const Epilogue& e,
                   const std::string& what) {
  ASSERT_EQ(got.element_type(), wanted.element_type()) << what;
  if (is_float(wanted.element_type())) {
    double largest = 0;
    for (const auto v : to_doubles(wanted)) largest = std::max(largest, std::fabs(v));
    const bool half = wanted.element_type() == ElementType::bf16;
    return expect_elements(got, wanted, half ? 0x1p-7 : 1e-5, largest * 1e-6, what);
  }
  const auto a = to_doubles(got), b = to_doubles(wanted), f = to_doubles(floats);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const double steps = f[i] / e.scale, beside = std::fabs(std::fabs(steps - std::floor(steps)) - 0.5);
    const bool truncated = e.stored.find("Convert") != std::string::npos;
    const double border = truncated ? std::fabs(steps - std::round(steps)) : beside;
    ASSERT_TRUE(!e.exact && !e.stored.empty() && std::fabs(a[i] - b[i]) <= 1 && border < 1e-4)
        << what << " at " << i << ": " << a[i] << ", wanted " << b[i] << " of " << f[i];
  }
}

/// How many offers of oneDNN there were.
std::size_t check(const Host& h, const Operands& o, const Epilogue& e, std::uint64_t seed) {
  const auto text = text_of(h, o, e, true);
  SCOPED_TRACE(text);
  auto g = parse(text);
  const auto inputs = widen(g, seed);
  Tensor floats;
  if (!e.stored.empty()) {
    auto before = parse(text_of(h, o, e, false));
    floats = interpret(before, widen(before, seed)).at(0);
  }
  std::size_t offers = 0;
  InterpreterOptions observe;
  observe.observe = [&](const Graph& graph, NodeId id, const std::vector<Tensor>& in,
                        const std::vector<Tensor>& out) {
    if (graph.node_slots() != g.node_slots()) return;
    for (const auto& offer : ask_kernels(NodeView(graph, id)).offers) {
      if (offer.kernel.find("onednn") != 0 || offer.stages < epilogue_size(graph.node(id))) continue;
      ++offers;
      EXPECT_TRUE(offer.label.find("vnni") != std::string::npos ||
                  offer.label.find("amx") != std::string::npos)
          << offer.label;
      const auto got =
          run_offer(graph, id, offer, in, {.threads = 1 + static_cast<int>(seed % 2), .shift = seed % 3});
      expect_stored(got.at(0), out[0], floats.valid() ? floats : out[0], e, offer.label);
    }
  };
  interpret(g, inputs, observe);
  return offers;
}

/// With AVX-VNNI alone much of what oneDNN has for products and for convolutions is refused.
bool has_products() { return effective_isa() == Isa::avx512; }

TEST(OnednnIntegers, convolutions) {
  if (!multiplies_here()) GTEST_SKIP() << "this processor has no VNNI";
  std::uint64_t seed = 1;
  for (const auto& h : kConvolutions)
    for (const auto& o : kOperands) {
      std::size_t offers = 0;
      for (auto i = ++seed % 2; i < kEpilogues.size(); i += 2) {  // the others with other operands
        offers += check(h, o, kEpilogues[i], ++seed);
        if (HasFatalFailure()) return;
      }
      const bool refused = (h.w == "14,1,3,3" && o.x == "i8" && o.zero != "_") ||
                           (h.w.find("given ") == 0 && o.w == "u8");  // which cannot be made i8 then
      if (!refused && has_products()) {
        EXPECT_GE(offers, kEpilogues.size() / 2 - 2) << h.w << " " << o.x << " " << o.zero;
      }
    }
}

TEST(OnednnIntegers, matrix_products) {
  if (!multiplies_here()) GTEST_SKIP() << "this processor has no VNNI";
  const Operands more[] = {{"u8", "i8", "_", "5"}, {"i8", "i8", "3", "-100"}, {"u8", "u8", "_", "17"}};
  std::uint64_t seed = 1;
  for (const auto& h : kProducts) {
    auto operands = kOperands;
    operands.insert(operands.end(), std::begin(more), std::end(more));
    for (const auto& o : operands) {
      std::size_t offers = 0;
      for (auto i = ++seed % 2; i < kEpilogues.size(); i += 2) {  // the others with other operands
        offers += check(h, o, kEpilogues[i], ++seed);
        if (HasFatalFailure()) return;
      }
      const bool packed = h.w == "50,75" || h.w == "300,700" || h.w == "37,53" || h.w == "40,1";
      const bool refused = (o.w == "u8" && !packed) || !has_products();
      if (!refused) {
        EXPECT_GE(offers, kEpilogues.size() / 2 - 2) << h.w << " " << o.x << o.w << o.zero;
      }
    }
  }
}

const Host kTransposed[] = {
    {"1,16,9,10", "16,32,2,2", "strides=[2,2]", "1,32,18,20", 16, false, true},
    {"1,40,7,7", "40,24,4,4", "strides=[2,2] pads_begin=[1,1] pads_end=[1,1]", "1,24,14,14", 160, false,
     true},
    {"2,33,5,6", "33,9,3,3", "pads_begin=[1,1] pads_end=[1,1]", "2,9,5,6", 297, false, true},
    {"1,64,6,6", "64,64,3,3", "strides=[2,2] pads_begin=[1,1] pads_end=[0,0] dilations=[1,1]", "1,64,12,12",
     144, false, true},
    {"1,24,8,8", "24,6,3,3", "groups=3 strides=[2,2]", "1,18,17,17", 18, false, true},
    {"1,20,30", "20,8,5", "strides=[3]", "1,8,92", 40, false, true},
    {"1,16,9,10", "given 16,32,2,2", "strides=[2,2]", "1,32,18,20", 16, false, true},
    {"1,8,5", "8,1,2", "strides=[2] output_padding=[1] groups=8", "1,8,11", 1, false, true},
    {"1,8,4,4,5", "8,16,3,3,3", "strides=[2,2,2]", "1,16,9,9,11", 27, false, true}};

/// Where oneDNN has something else than what saturates.
TEST(OnednnIntegers, transposed_convolutions) {
  if (!multiplies_here()) GTEST_SKIP() << "this processor has no VNNI";
  std::uint64_t seed = 1;
  std::size_t offers = 0;
  for (const auto& h : kTransposed)
    for (const auto& o : kOperands)
      for (auto i = ++seed % 2; i < std::size(kEpilogues); i += 2) {  // the others with other operands
        const auto here = check(h, o, kEpilogues[i], ++seed);
        if (HasFatalFailure()) return;
        EXPECT_TRUE(here == 0 || o.zero == "_") << h.w;
        offers += here;
      }
  EXPECT_GE(offers, has_products() ? kEpilogues.size() * 10 : 0);
}

}  // namespace
}  // namespace lamina::testing
