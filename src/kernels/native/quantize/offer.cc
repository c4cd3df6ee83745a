/// DynamicQuantize: one pass for the range, one for the levels.
#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/offers.h"
#include "kernels/native/quantize/loops.h"

namespace lamina {
namespace {

constexpr std::int64_t kUnitElements = 4096;

struct Quantizer {
  std::int64_t count;
  WorkPartition all;

  void run(const RunArgs& args) const {
    const auto& table = dynamic_quantize_table();
    const auto* x = static_cast<const float*>(args.in[0]);
    const auto [low, high] = range(x, static_cast<Range*>(args.scratch));
    // The expressions of DynamicQuantize::evaluate(), so that the very same levels come out.
    const float scale = low == high ? 1.0f : (high - low) / 255.0f;
    const float zero = std::nearbyint(std::clamp(-low / scale, 0.0f, 255.0f));
    auto* y = static_cast<std::uint8_t*>(args.out[0]);
    each([&](std::int64_t first, std::int64_t size, std::int64_t) {
      table.quantize(x + first, y + first, size, scale, zero);
    });
    *static_cast<float*>(args.out[1]) = scale;
    *static_cast<std::uint8_t*>(args.out[2]) = zero > 0 ? static_cast<std::uint8_t>(zero) : 0;  // may be NaN
  }

  struct alignas(64) Range {  // of a slot; 0 is in all of them
    float low = 0, high = 0;
  };

 private:
  template <class F>
  void each(const F& f) const {
    parallel_for(all, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
      f(begin * kUnitElements, std::min(end * kUnitElements, count) - begin * kUnitElements, slot);
    });
  }

  Range range(const float* x, Range* slots) const {
    std::fill_n(slots, all.slots, Range{});
    each([&](std::int64_t first, std::int64_t size, std::int64_t slot) {
      dynamic_quantize_table().range(x + first, size, slots[slot].low, slots[slot].high);
    });
    Range whole;
    for (std::int64_t s = 0; s < all.slots; ++s) {
      whole.low = std::min(whole.low, slots[s].low);
      whole.high = std::max(whole.high, slots[s].high);
    }
    return whole;
  }
};

}  // namespace

void offer_dynamic_quantize(const NodeView& v, Answers& answers) {
  if (v.element(0) != ElementType::f32)
    return answers.refuse("native", "DynamicQuantize of {}", name_of(v.element(0)));
  const auto count = static_cast<std::int64_t>(element_count(v.dims(0)));
  Offer o(v, fmt::format("native_dynamic_quantize_{}", name_of(v.machine().isa())), Layout::plain);
  o.cost = cost_of(v.machine(), Family::vector_light, 4.0 * static_cast<double>(count),
                   9.0 * static_cast<double>(count));
  const Quantizer q{count, partitioned_here(ceil_div(count, kUnitElements), o.cost.us())};
  o.scratch = static_cast<std::size_t>(q.all.slots) * sizeof(Quantizer::Range);
  o.make = [q](MakeContext&) { return executable([q](const RunArgs& args) { q.run(args); }); };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
