#pragma once
/// What all oneDNN kernels share. The only header of the project that includes oneDNN.
#include <atomic>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "kernels/cost.h"
#include "kernels/epilogue.h"
#include "kernels/family.h"
#include "kernels/kernel.h"
#include "kernels/onednn/refused.h"

namespace lamina::onednn {

using Desc = dnnl::memory::desc;

/// The engine of the process. The first call limits oneDNN (kernels/onednn_isa.h).
dnnl::engine& engine();

std::optional<dnnl::memory::data_type> type_of(ElementType type);
/// A dense tensor in one of our layouts.
Desc desc(const Dims& dims, ElementType type, Layout layout);
/// Any layout oneDNN likes (weights).
Desc any(const Dims& dims, ElementType type);

/// "brgconv:avx512_core", "f32" -> "brgconv_avx512_core_f32"
std::string label(const Machine& machine, const char* implementation, std::string_view type);
/// True when the implementation is a scalar reference.
bool is_ref(const char* implementation);

/// One argument of a primitive: where its memory comes from.
struct Arg {
  int id;  ///< DNNL_ARG_...
  Desc desc;
  /// unsigned_number, signed_number: an input of one element of 8 bits, where oneDNN reads one of 32.
  /// reordered: an input that is packed at each run.
  enum class From { input, output, constant, unsigned_number, signed_number, reordered } from;
  std::size_t index = 0;  ///< of an input or output
  Tensor constant;
  Layout constant_lies = Layout::plain;  ///< layout in which oneDNN reads it
  Desc given = {};                       ///< description of an input that is reordered
  std::size_t scratch_at = 0;            ///< where it is reordered to, in the step's scratch memory
};

/// A primitive with its arguments as an Executable; scratchpad of the user.
std::unique_ptr<Executable> make_primitive(dnnl::primitive primitive, std::vector<Arg> args, Desc scratchpad);

/// Runs both, one after the other, on the same pointers and scratch memory.
std::unique_ptr<Executable> one_after_the_other(std::unique_ptr<Executable> first,
                                                std::unique_ptr<Executable> second);

/// Scratch memory of a primitive whose weights are packed at each run: they lie behind its own.
struct PackedAtRun {
  std::size_t at, scratch;
};
/// Nothing where oneDNN has no such reorder.
std::optional<PackedAtRun> packed_at_run(const Desc& scratchpad, const Desc& from, const Desc& to);

/// Reorders (packs) a constant into the descriptor that a primitive wants, through the weight store.
/// `prepare`, if any, comes first: `key` tells of it, and of what the descriptor keeps to itself.
Tensor pack(MakeContext& context, const Tensor& source, const Desc& from, const Desc& to,
            const std::string& key, const WeightStore::Make& prepare = nullptr);

/// Arguments of a primitive: constants where oneDNN can read them.
std::vector<Arg> aligned(std::vector<Arg> args, MakeContext& context);

/// The scratchpad is the request's.
dnnl::primitive_attr user_scratch();

/// What the node multiplies: f32 numbers, bf16 ones with f32 sums, or u8 or i8 (input 0) with i32 sums;
/// undefined: others.
ElementType multiplied(const NodeView& view);
/// Yes if oneDNN multiplies what the node multiplies on its machine; integers, if it does so exactly.
Verdict multiplies(const NodeView& view);
/// How many multiply-adds of f32 take as long as one of that type.
double share_of_f32(const Machine& machine, ElementType type);

/// oneDNN adds the numbers of a window one after the other, in floats: of more than these too much gets lost.
inline constexpr std::size_t kMostAdded = 1 << 14;

/// oneDNN computes whole vectors of channels or columns: how many times as many as there are.
double filled_lanes(const Machine& machine, std::int64_t count);

/// oneDNN makes tables when it does something first, or for a new kind of layer, and exit() destroys them,
/// the last one first: what runs has to stop before that. Called behind what may have made one; in the midst
/// of that nothing helps. `left`: times that there may be a new one.
void stop_before_tables_go(std::atomic<int>& left);

/// Goes on to what oneDNN would take if it had not the implementation of `pd`; false: nothing.
template <class Pd>
bool next_implementation(Pd& pd) {
  if constexpr (requires { pd.next_impl(); })
    return pd.next_impl();
  else
    return false;  // reorders
}

/// Runs `create`, which makes a primitive descriptor, and takes oneDNN's first implementation that no row of
/// refused.cc refuses; refusals in `answers` for those before it, and when oneDNN has none, or only a
/// reference.
template <class Make>
auto try_create(Answers& answers, const Asked& asked, const std::string& what, Make&& create)
    -> std::optional<decltype(create())> {
  try {
    static std::atomic<int> left{8};  // of each family
    auto pd = create();
    stop_before_tables_go(left);
    do {
      const std::string implementation = pd.impl_info_str();
      if (is_ref(implementation.c_str())) {
        answers.refuse("onednn", "{}: oneDNN has only its reference implementation ({})", what,
                       implementation);
        return std::nullopt;
      }
      const auto* row = refusal_of(asked, implementation);
      if (!row) return pd;
      answers.refuse("onednn", "{}: {}", implementation, row->reason);
    } while (next_implementation(pd));
    answers.refuse("onednn", "{}: oneDNN has no other implementation", what);
  } catch (const dnnl::error& e) {
    answers.refuse("onednn", "{}: oneDNN has no implementation", what);
  }
  return std::nullopt;
}

// One function per family of operators.
void offer_convolution(const NodeView& v, Answers& answers);
void offer_deconvolution(const NodeView& v, Answers& answers);
void offer_matmul(const NodeView& v, Answers& answers);
void offer_pooling(const NodeView& v, Answers& answers);
void offer_eltwise(const NodeView& v, Answers& answers);
void offer_convert(const NodeView& v, Answers& answers);
void offer_normalization(const NodeView& v, Answers& answers);
void offer_mean(const NodeView& v, Answers& answers);
void offer_resampling(const NodeView& v, Answers& answers);

}  // namespace lamina::onednn
