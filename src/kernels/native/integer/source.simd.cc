/// Copies of sources; see source.h.
#include "kernels/native/integer/source.h"

#include <cstring>

#include "kernels/native/simd/per_isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/native/integer/source.simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void words(const std::uint8_t* from, std::int64_t count, std::int32_t zero, std::byte* to) {
  const hn::ScalableTag<std::int16_t> d16;
  const hn::Rebind<T, decltype(d16)> d8;
  constexpr std::int64_t kStep = hn::MaxLanes(d16);
  const auto* in = reinterpret_cast<const T*>(from);
  auto* out = reinterpret_cast<std::int16_t*>(to);
  const auto less = hn::Set(d16, static_cast<std::int16_t>(zero));
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep)
    hn::StoreU(hn::Sub(hn::PromoteTo(d16, hn::LoadU(d8, in + i)), less), d16, out + i);
  for (; i < count; ++i) out[i] = static_cast<std::int16_t>(in[i] - zero);
}

void bytes(const std::uint8_t* from, std::int64_t count, std::int32_t, std::byte* to) {
  std::memcpy(to, from, static_cast<std::size_t>(count));
}

void shifted(const std::uint8_t* from, std::int64_t count, std::int32_t, std::byte* to) {
  const hn::ScalableTag<std::uint8_t> d;
  constexpr std::int64_t kStep = hn::MaxLanes(d);
  auto* out = reinterpret_cast<std::uint8_t*>(to);
  const auto sign = hn::Set(d, std::uint8_t{128});
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) hn::StoreU(hn::Xor(hn::LoadU(d, from + i), sign), d, out + i);
  for (; i < count; ++i) out[i] = static_cast<std::uint8_t>(from[i] ^ 128);
}

}  // namespace

integers::SourceLoops make_source_loops() {
  return {{words<std::uint8_t>, words<std::int8_t>, bytes, shifted}};
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lamina {
LAMINA_TABLE(integers::SourceLoops, integers::source_loops, make_source_loops)
}
#endif
