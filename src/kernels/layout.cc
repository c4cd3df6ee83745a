#include "kernels/layout.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <numeric>

#include "base/error.h"
#include "base/no_destructor.h"
#include "kernels/bits.h"

namespace lamina {
namespace {

std::vector<std::size_t> as_they_are(std::size_t rank) {
  std::vector<std::size_t> order(rank);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

std::vector<std::size_t> channels_behind(std::size_t rank) {
  auto order = as_they_are(rank);
  if (rank >= 3) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

/// Rows never move and never go, so that reading takes no lock.
class Table {
 public:
  Table() {
    add({"plain", as_they_are});
    add({"channels_last", channels_behind});
    add({"channels_last_bits", channels_behind, std::make_shared<const PackedLayout>(bits::packing())});
  }

  Layout add(LayoutInfo info) {
    const std::lock_guard lock(mutex_);
    const auto count = count_.load(std::memory_order_relaxed);
    if (count == rows_.size())
      fail(ErrorCode::bad_call, "layout \"{}\": there are {} already", info.name, count);
    const bool word = !info.name.empty() && info.name.find_first_of(" ,\t\n") == std::string::npos;
    if (!word || find(info.name))
      fail(ErrorCode::bad_call, "layout \"{}\": wanted a word that names no other layout", info.name);
    rows_[count] = std::move(info);
    count_.store(count + 1, std::memory_order_release);
    return static_cast<Layout>(count);
  }

  const LayoutInfo& operator[](Layout layout) const {
    const auto i = static_cast<std::size_t>(layout);
    LAMINA_CHECK(i < count_.load(std::memory_order_acquire), "there is no layout {}", i);
    return rows_[i];
  }

  std::optional<Layout> find(std::string_view name) const {
    for (std::size_t i = 0; i < count_.load(std::memory_order_acquire); ++i)
      if (rows_[i].name == name) return static_cast<Layout>(i);
    return std::nullopt;
  }

 private:
  std::array<LayoutInfo, 64> rows_;
  std::atomic<std::size_t> count_ = 0;
  std::mutex mutex_;
};

Table& table() {
  static ProcessLifetime t([] { return Table(); });
  return *t;
}

}  // namespace

Layout add_layout(LayoutInfo info) { return table().add(std::move(info)); }
const LayoutInfo& info_of(Layout layout) { return table()[layout]; }
std::string_view name_of(Layout layout) { return info_of(layout).name; }
std::optional<Layout> layout_named(std::string_view name) { return table().find(name); }

Dims strides_of(const Dims& shape, Layout layout) {
  const auto& info = info_of(layout);
  LAMINA_CHECK(!info.packing, "{} has no strides", info.name);
  const auto order = info.order(shape.size());
  Dims strides(shape.size(), 1);
  std::int64_t step = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    strides[*axis] = step;
    step *= shape[*axis];
  }
  return strides;
}

std::size_t memory_bytes(ElementType type, const Dims& shape, Layout layout) {
  if (const auto* packing = packing_of(layout)) return packing->bytes(type, shape);
  return (element_count(shape) * static_cast<std::size_t>(bits_of(type)) + 7) / 8;
}

bool same_bytes(const Dims& shape, Layout a, Layout b) {
  if (a == b) return true;
  if (packing_of(a) || packing_of(b)) return false;
  const auto of_a = strides_of(shape, a), of_b = strides_of(shape, b);
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1 && of_a[i] != of_b[i]) return false;
  return true;
}

}  // namespace lamina
