/// The table of oneDNN's implementations that are not taken, with the reason for each.
///
/// A row names the instruction sets and the primitives (none: all), the beginning of a word of the
/// implementation's name (empty: any), a condition (null: always), and the reason, which `lamina explain`
/// shows behind the implementation's name. Every implementation passes try_create() (onednn.h), which asks
/// the table; where a row refuses it, oneDNN's next one for the same problem is looked at. The tools that
/// find what belongs here are tests/kernels/onednn_stack_test.py (the stack pointer) and the sweep against
/// the interpreter. docs/onednn.md tells users of it.
#include "kernels/onednn/refused.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/parallel.h"
#include "kernels/onednn/convolution_offer.h"
#include "kernels/onednn/integers.h"
#include "kernels/onednn/post_ops.h"
#include "ops/convolution.h"
#include "ops/matmul.h"

namespace lamina::onednn {
namespace {

bool multiplies_integers(const Asked& asked) { return asked.integers != nullptr; }

bool saturates(const Asked& asked, std::string_view implementation) {
  const auto has = [&](std::string_view part) { return implementation.find(part) != std::string_view::npos; };
  return multiplies_integers(asked) && !has("vnni") && !has("amx");
}

bool rounds_sums(const Asked& asked, std::string_view implementation) {
  return multiplies_integers(asked) && asked.post->result == ElementType::i32 &&
         !asked.integers->stores_sums(implementation, asked.products);
}

bool depthwise_with_operand(const Asked& asked, std::string_view) {
  const auto& v = asked.node;
  return multiplies_integers(asked) && asked.post->operands &&
         is_depthwise(v.dims(1), v.op<Convolution>()->groups) && v.out_dims()[1] % 8 != 0;
}

/// The result is larger than the windows make it.
bool output_padding(const Asked& asked, std::string_view) {
  const auto& right = asked.window->right;
  return multiplies_integers(asked) && std::any_of(right.begin(), right.end(), [](auto n) { return n < 0; });
}

bool few_channels_in_a_group(const Asked& asked, std::string_view) {
  constexpr std::int64_t kEnough = 4;
  const auto& v = asked.node;
  const auto w = v.dims(1);
  const auto* convolution = v.op<Convolution>();
  const auto groups = convolution ? convolution->groups : v.op<ConvolutionBackpropData>()->groups;
  const auto of_group = convolution ? w[0] / groups : w[1];
  return (is_depthwise(w, groups) ? w[0] : of_group) < kEnough;
}

/// With threads to spare, parts of a long sum are summed apart. Up to two threads have enough of the matrices
/// themselves.
bool several_transposed_left(const Asked& asked, std::string_view) {
  constexpr std::int64_t kLong = 2048;
  const auto& v = asked.node;
  const auto a = v.dims(0), b = v.dims(1);
  if (!v.op<MatMul>()->transpose_a || a.size() < 2 || threads_here() <= 2) return false;
  const auto several = [](const Dims& dims) {
    return dims.size() > 2 && std::any_of(dims.begin(), dims.end() - 2, [](auto n) { return n > 1; });
  };
  return a.end()[-2] >= kLong && (several(a) || several(b));
}

/// True if bias and stages may be applied to a part of a sum. brgconv may compute a window row by row,
/// depending on the sizes of caches. If a stride leaves no tap of a row, the kernel ends the sum at that row
/// as it does at the last one: it adds the bias and applies the stages to the sum in the result, and later
/// rows are added to that. In a window of two rows at most one row ends the sum.
bool ends_sums_early(const Asked& asked, std::string_view implementation) {
  if (!implementation.starts_with("brg") || (!asked.bias && asked.post->stages == 0)) return false;
  if (multiplies_integers(asked) || asked.post->result != ElementType::f32) return false;
  const auto w = asked.node.dims(1);
  const auto& strides = asked.window->strides;
  std::int64_t rows = 1;
  bool leaves_out = false;
  for (std::size_t i = 0; i + 1 < strides.size(); ++i) {  // all axes but the width
    rows *= w[i + 2];
    leaves_out = leaves_out || (strides[i] > 1 && w[i + 2] > 1);
  }
  return leaves_out && rows > 2;
}

/// Numbers of 16 bits are multiplied in pairs, those of 8 bits four at a time. Where channels do not fill the
/// last group, numbers of the next pixel are read and multiplied by 0, and behind the last pixel what lies
/// behind the tensor. Sizes of caches decide whether the implementation copies the picture first, which
/// helps; with up to 32 channels it has not been seen to fail.
bool reads_beyond_tensor(const Asked& asked, std::string_view implementation) {
  constexpr std::int64_t kFew = 16;
  if (implementation.find("brgconv_1x1") != std::string_view::npos) return false;
  const auto& v = asked.node;
  const auto w = v.dims(1);
  const auto* transposed = v.op<ConvolutionBackpropData>();
  const auto inputs = transposed ? w[0] / transposed->groups : w[1];
  const auto together = 32 / bits_of(v.element(0));
  return inputs % together != 0 && inputs > kFew;
}

/// Many input channels are summed in turns, and sums so far are read from the result: whole vectors, also of
/// the last pixel, whose channels may be fewer. More input channels than these may be many.
bool reads_beyond_result(const Asked& asked, std::string_view) {
  constexpr std::int64_t kVector = 16;
  const auto& v = asked.node;
  const auto w = v.dims(1);
  return w[1] % kVector != 0 && w[0] / v.op<ConvolutionBackpropData>()->groups > kVector;
}

using enum Primitive;

const std::array kRefused{
    Refused{{},
            {},
            "gemm",
            nullptr,
            "oneDNN's gemm computes with the stack pointer in heap memory: a signal that arrives then "
            "overwrites other data"},
    Refused{{},
            {convolution, deconvolution, matmul},
            "",
            saturates,
            "int8: it saturates sums at 16 bits, or halves weights"},
    Refused{{},
            {convolution, deconvolution, matmul},
            "",
            rounds_sums,
            "int8: it rounds sums of that many products to f32 before it stores i32"},
    Refused{{Isa::sse41, Isa::avx2},
            {convolution},
            "",
            depthwise_with_operand,
            "int8: it is wrong with an operand and a number of channels that is no multiple of 8"},
    Refused{{},
            {deconvolution},
            "jit",
            output_padding,
            "int8: it is wrong with output padding, or reads beyond the end of tensors"},
    Refused{
        {},
        {deconvolution},
        "brgconv_strided",
        ends_sums_early,
        "with windows of more than two rows it adds the bias and applies stages to parts of the sums, too"},
    Refused{
        {},
        {convolution, deconvolution},
        "brgconv",
        reads_beyond_tensor,
        "with an odd number of bf16 channels, or a number of 8-bit ones that is no multiple of 4, it reads "
        "beyond the end of the tensor: that memory may be unmapped, or hold NaN"},
    Refused{{Isa::avx512},
            {deconvolution},
            "jit:",
            reads_beyond_result,
            "it reads whole vectors of output channels beyond the end of the result: that memory may be "
            "unmapped"},
    Refused{{Isa::avx2},
            {convolution, deconvolution},
            "brg",
            few_channels_in_a_group,
            "with AVX2 and fewer than 4 output channels in a group it reads weights through a mask that "
            "reaches into other pages, which is up to 200 times as slow"},
    Refused{{Isa::avx512},
            {matmul},
            "",
            several_transposed_left,
            "it splits a long sum into parts, and then reads the wrong parts of several transposed left "
            "matrices"},
};

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

}  // namespace

bool has_word(std::string_view implementation, std::string_view word) {
  for (std::size_t at = 0; (at = implementation.find(word, at)) != std::string_view::npos; ++at)
    if (at == 0 || !in_word(implementation[at - 1]) || word.empty()) return true;
  return false;
}

bool is_always_refused(Isa isa, Primitive primitive, std::string_view implementation) {
  return std::any_of(kRefused.begin(), kRefused.end(), [&](const Refused& r) {
    return !r.when && r.isa.has(isa) && r.primitives.has(primitive) &&
           has_word(implementation, r.implementation);
  });
}

const Refused* refusal_of(const Asked& asked, std::string_view implementation) {
  const auto row = std::find_if(kRefused.begin(), kRefused.end(), [&](const Refused& r) {
    return r.isa.has(asked.node.machine().library) && r.primitives.has(asked.primitive) &&
           has_word(implementation, r.implementation) && (!r.when || r.when(asked, implementation));
  });
  return row == kRefused.end() ? nullptr : &*row;
}

}  // namespace lamina::onednn
