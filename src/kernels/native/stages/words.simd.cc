/// Comparisons of i32 and Select of 32-bit elements; see loops.h. Elements travel as f32, which keeps their
/// bits.
#include "kernels/native/simd/per_isa.h"
#include "kernels/native/stages/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/stages/words.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/native/stages/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

using namespace stage_loops;
using stages::Compare;
using stages::IntegerLoops;

template <class F>
HWY_INLINE void compare(const LoopArgs& args, const F& f) {
  auto* out = static_cast<std::uint8_t*>(args.out);
  for_operands(
      args,
      [&](V a, V b) HWY_ATTR { return hn::RebindMask(D(), f(hn::BitCast(I(), a), hn::BitCast(I(), b))); },
      [out](auto m, std::int64_t i, std::int64_t n) HWY_ATTR { store_bytes(m, out + i, n); });
}

using W = hn::Vec<I>;
void equal(const LoopArgs& args) {
  compare(args, [](W a, W b) HWY_ATTR { return hn::Eq(a, b); });
}
void not_equal(const LoopArgs& args) {
  compare(args, [](W a, W b) HWY_ATTR { return hn::Not(hn::Eq(a, b)); });
}
void less(const LoopArgs& args) {
  compare(args, [](W a, W b) HWY_ATTR { return hn::Lt(a, b); });
}
void less_equal(const LoopArgs& args) {
  compare(args, [](W a, W b) HWY_ATTR { return hn::Not(hn::Gt(a, b)); });
}
void greater(const LoopArgs& args) {
  compare(args, [](W a, W b) HWY_ATTR { return hn::Gt(a, b); });
}
void greater_equal(const LoopArgs& args) {
  compare(args, [](W a, W b) HWY_ATTR { return hn::Not(hn::Lt(a, b)); });
}

template <bool kVectorA, bool kVectorB>
void select_where(const LoopArgs& args) {
  const D d;
  const auto* condition = static_cast<const std::uint8_t*>(args.in[0]);
  const auto *a = static_cast<const float*>(args.in[1]), *b = static_cast<const float*>(args.in[2]);
  auto* out = static_cast<float*>(args.out);
  const V yes = set(*a), no = set(*b);
  const std::int64_t n = lanes();
  std::int64_t i = 0;
  for (; i + n <= args.count; i += n)
    hn::StoreU(hn::IfThenElse(mask_of(hn::LoadU(Bytes(), condition + i)),
                              kVectorA ? hn::LoadU(d, a + i) : yes, kVectorB ? hn::LoadU(d, b + i) : no),
               d, out + i);
  const auto rest = args.count - i;
  if (rest == 0) return;
  HWY_ALIGN std::uint8_t buffer[64] = {};
  for (std::int64_t k = 0; k < rest; ++k) buffer[k] = condition[i + k];
  store_some(hn::IfThenElse(mask_of(hn::LoadU(Bytes(), buffer)), kVectorA ? load_some(D(), a + i, rest) : yes,
                            kVectorB ? load_some(D(), b + i, rest) : no),
             D(), out + i, rest);
}

void select(const LoopArgs& args) {
  switch (args.vectors & 7) {
    case 7:
      return select_where<true, true>(args);
    case 3:
      return select_where<true, false>(args);
    case 5:
      return select_where<false, true>(args);
    case 1:
      return select_where<false, false>(args);
    default: {  // one condition for all
      const bool yes = *static_cast<const std::uint8_t*>(args.in[0]) != 0;
      const bool vector = (args.vectors >> (yes ? 1 : 2) & 1) != 0;
      const auto* from = static_cast<const float*>(args.in[yes ? 1 : 2]);
      auto* out = static_cast<float*>(args.out);
      for (std::int64_t i = 0; i < args.count; ++i) out[i] = from[vector ? i : 0];
    }
  }
}

}  // namespace

void fill_word_loops(IntegerLoops& t, int i32) {
  auto& c = t.compare[i32];
  c[static_cast<int>(Compare::equal)] = equal;
  c[static_cast<int>(Compare::not_equal)] = not_equal;
  c[static_cast<int>(Compare::less)] = less;
  c[static_cast<int>(Compare::less_equal)] = less_equal;
  c[static_cast<int>(Compare::greater)] = greater;
  c[static_cast<int>(Compare::greater_equal)] = greater_equal;
  t.select[2] = select;
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
constexpr auto kFillWordLoops = LAMINA_PER_ISA(fill_word_loops);

namespace stages {

void fill_word_loops(IntegerLoops& table);
void fill_word_loops(IntegerLoops& table) { kFillWordLoops.best()(table, integer_index(ElementType::i32)); }

}  // namespace stages
}  // namespace lamina
#endif
