#include "kernels/native/integer/matching.h"

#include <algorithm>
#include <bit>

#include "base/parallel.h"

namespace lamina::integers {
namespace {

using gemm::MatchedOrder;
using gemm::Product;

constexpr int kWindow = MatchedOrder::kWindow;
/// Columns of a group of panels: about so many share an order, which costs a copy of A; and at most.
constexpr std::int64_t kColumns[] = {32, 16}, kMostColumns = 48;
/// Words of both weights that a pair takes.
constexpr int kMostTogether = 128;
/// What a word costs a column, against one of those that there are without singles: a copy is made, and a
/// product begun, once for the columns of a group. Where it is more than the most, pairs of 16 bits are
/// faster.
double cost_of_word(double words, std::int64_t columns, double depth) {
  const auto width = static_cast<double>(columns);
  return words * (1 + 1.2 / width) + 90 / (width * depth);
}
constexpr double kFineCost = 1.08, kMostCost = 1.21;
constexpr std::uint8_t kZero = 0x80;

/// An order for all groups of so many panels.
MatchedOrder order_by(const Product& p, const WeightPlaces& at, std::int64_t panels) {
  MatchedOrder r;
  r.windows = p.panels.depth / MatchedOrder::kLeastWords;
  r.run = ceil_div(at.channels, MatchedOrder::kWindow);
  r.back = r.run * kWindow - at.channels;
  r.panels = panels;
  r.groups = ceil_div(p.panels.count, panels);
  return r;
}

/// Columns [first, last) of a group.
struct Columns {
  Columns(const Product& p, std::int64_t index)
      : group(index / p.matched_order->groups),
        first(p.panels.column(index % p.matched_order->groups * p.matched_order->panels)),
        last(std::min(p.panels.column(std::min(
                          (index % p.matched_order->groups + 1) * p.matched_order->panels, p.panels.count)),
                      p.panels.columns)) {}
  std::int64_t group, first, last;
};

std::int16_t largest_sum(const std::int16_t (&a)[kMostColumns], const std::int16_t (&b)[kMostColumns]) {
  std::int16_t most = 0;
  for (std::int64_t j = 0; j < kMostColumns; ++j) {
    const auto sum = static_cast<std::int16_t>(a[j] + b[j]);
    most = sum > most ? sum : most;
  }
  return most;
}

/// Weights of a window of k, without those of the window before.
class Window {
 public:
  Window(const Product& p, const Operands& o, const WeightPlaces& at, const Columns& columns,
         std::int64_t index, const void* weights)
      : first_(index % p.matched_order->run + 1 == p.matched_order->run
                   ? static_cast<int>(p.matched_order->back)
                   : 0),
        count_(columns.last - columns.first) {
    const auto k = index % p.matched_order->run * kWindow - first_;
    const auto first = columns.group * at.group + index / p.matched_order->run * at.run + k * at.channel;
    for (std::int64_t j = 0; j < count_; ++j) {
      const auto column = columns.first + j;
      const auto zero = o.zero_of_column(columns.group * p.panels.columns + column);
      for (int i = first_; i < kWindow; ++i) {
        const auto place = first + i * at.channel + column * at.column;
        numbers_[i][j] = static_cast<std::int16_t>(o.weight(weights, place) - zero);
      }
    }
  }

  int first() const { return first_; }
  std::int16_t at(int i, std::int64_t column) const { return numbers_[i][column]; }
  bool bytes() const {
    bool all = true;
    for (const auto& row : numbers_)
      for (const auto w : row) all = all && w >= -128 && w <= 127;
    return all;
  }
  /// For each number those that are safe beside it, as bits.
  void partners(std::uint16_t (&of)[kWindow]) const {
    std::int16_t above[kWindow][kMostColumns], below[kWindow][kMostColumns];
    for (int i = 0; i < kWindow; ++i)
      for (std::int64_t j = 0; j < kMostColumns; ++j) {
        const std::int16_t w = numbers_[i][j];
        above[i][j] = static_cast<std::int16_t>(w > 0 ? w : 0);
        below[i][j] = static_cast<std::int16_t>(w < 0 ? -w : 0);
      }
    std::fill_n(of, kWindow, std::uint16_t{0});
    for (int a = 0; a < kWindow; ++a)
      for (int b = a + 1; b < kWindow; ++b) {
        if (largest_sum(above[a], above[b]) > kMostTogether ||
            largest_sum(below[a], below[b]) > kMostTogether)
          continue;
        of[a] = static_cast<std::uint16_t>(of[a] | 1u << b);
        of[b] = static_cast<std::uint16_t>(of[b] | 1u << a);
      }
  }

 private:
  int first_;
  std::int64_t count_;
  std::int16_t numbers_[kWindow][kMostColumns] = {};
};

/// Partners for as many as can be of those from `first` on, one after the other: first who has fewest, among
/// those who have fewest, from another one on each time. Returns how many have none.
int pair_up(const std::uint16_t (&partners)[kWindow], int first, int begin,
            std::uint8_t (&order)[2 * kWindow]) {
  unsigned left = 0xffffu << first & 0xffffu;
  int pairs = 0, singles = 0;
  std::uint8_t alone[kWindow];
  const auto fewest = [&](unsigned among) {
    int best = -1, least = kWindow + 1;
    for (int n = 0; n < kWindow; ++n) {
      const int i = (n + begin) % kWindow;
      if (!(among >> i & 1)) continue;
      if (const int count = std::popcount(partners[i] & left); count < least) least = count, best = i;
    }
    return best;
  };
  while (left != 0) {
    const int a = fewest(left);
    left &= ~(1u << a);
    if ((partners[a] & left) == 0) {
      alone[singles++] = static_cast<std::uint8_t>(a);
      continue;
    }
    const int b = fewest(partners[a] & left);
    left &= ~(1u << b);
    order[2 * pairs] = static_cast<std::uint8_t>(a);
    order[2 * pairs + 1] = static_cast<std::uint8_t>(b);
    ++pairs;
  }
  std::fill(order + 2 * pairs, order + 2 * kWindow, kZero);
  for (int i = 0; i < singles; ++i) order[2 * (pairs + i)] = alone[i];
  return singles;
}

/// The best order found; returns its words.
int order_of(const Window& window, std::uint8_t (&order)[2 * kWindow]) {
  std::uint16_t partners[kWindow];
  window.partners(partners);
  int least = kWindow + 1;
  const int odd = window.first() % 2;  // one has none then
  for (int begin = 0; begin < kWindow && least > odd; ++begin) {
    std::uint8_t tried[2 * kWindow];
    const int singles = pair_up(partners, window.first(), begin, tried);
    if (singles < least) least = singles, std::copy_n(tried, 2 * kWindow, order);
  }
  return ceil_div((kWindow - window.first() - least) / 2 + least, 2);
}

/// Tables of a MatchedOrder as one tensor of i32: panels of a group, starts, places.
struct Tables {
  explicit Tables(const Product& p)
      : lists(p.groups * p.matched_order->groups), windows(p.matched_order->windows) {}
  std::int64_t lists, windows;
  std::int64_t starts() const { return lists * (windows + 1); }
  std::int64_t size() const { return 1 + starts() + lists * 2 * windows * kWindow / 4; }
};

/// Fills the list of one group of columns; false if a weight has more than 8 bits.
bool fill_list(const Product& p, const Operands& o, const WeightPlaces& at, const void* weights,
               std::int64_t index, std::int32_t* starts, std::uint8_t* places) {
  const Columns columns(p, index);
  const auto windows = p.matched_order->windows;
  starts[0] = 0;
  for (std::int64_t w = 0; w < windows; ++w) {
    const Window window(p, o, at, columns, w, weights);
    if (!window.bytes()) return false;
    std::uint8_t order[2 * kWindow] = {};
    starts[w + 1] = starts[w] + order_of(window, order);
    std::copy_n(order, kWindow, places + w * kWindow);
    std::copy_n(order + kWindow, kWindow, places + (windows + w) * kWindow);
  }
  return true;
}

/// In the product's order, and what a word costs then; an empty tensor where a weight has more than 8 bits.
Tensor tables_of(const Product& p, const Operands& o, const WeightPlaces& at, const Tensor& weights,
                 double& cost) {
  const Tables t(p);
  Tensor out(ElementType::i32, {t.size()});
  auto* list = out.data<std::int32_t>().data();
  list[0] = static_cast<std::int32_t>(p.matched_order->panels);
  auto* starts = list + 1;
  auto* places = reinterpret_cast<std::uint8_t*>(starts + t.starts());
  std::vector<char> fine(static_cast<std::size_t>(t.lists));
  const auto us = static_cast<double>(t.lists * t.windows);  // about one each
  parallel_for(partitioned_here(t.lists, us), [&](auto begin, auto end) {
    for (auto i = begin; i < end; ++i)
      fine[static_cast<std::size_t>(i)] = fill_list(p, o, at, weights.raw(), i, starts + i * (t.windows + 1),
                                                    places + i * 2 * t.windows * kWindow);
  });
  if (!std::all_of(fine.begin(), fine.end(), [](char f) { return f != 0; })) return {ElementType::i32, {0}};
  double words = 0;
  for (std::int64_t i = 0; i < t.lists; ++i) words += starts[i * (t.windows + 1) + t.windows];
  const auto full = static_cast<double>(at.runs * at.length()) / 4;
  cost = cost_of_word(words / (static_cast<double>(t.lists) * full),
                      p.matched_order->panels * 2 * p.panels.lanes, full);
  return out;
}

/// Tables of the best order; an empty tensor if none pays.
Tensor best_tables(Product& p, const Operands& o, const WeightPlaces& at, const Tensor& weights) {
  Tensor best(ElementType::i32, {0});
  double least = kMostCost;
  std::int64_t before = 0;
  for (const auto columns : kColumns) {
    const auto panels = std::max<std::int64_t>(1, columns / (2 * p.panels.lanes));
    if (panels == before) break;
    before = panels;
    p.matched_order = order_by(p, at, panels);
    double cost = 0;
    const auto tables = tables_of(p, o, at, weights, cost);
    if (tables.size() == 0) break;
    if (cost < least) least = cost, best = tables;
    if (cost < kFineCost) break;  // fewer columns have other costs
  }
  return best;
}

}  // namespace

std::optional<Tensor> match(Product& p, const Operands& o, const WeightPlaces& places, const Tensor& weights,
                            WeightStore& store) {
  const auto key =
      fmt::format("native_integer_matching {} {} {} {} {} {} {} {}", p.panels.lanes, o.key(), p.groups,
                  places.channels, places.channel, places.column, places.run, places.runs);
  const auto tables = store.moved(weights, key, PackedSize::of_any(),
                                  [&](const Tensor& w) { return best_tables(p, o, places, w); });
  p.matched_order = std::nullopt;
  if (tables.size() == 0) return std::nullopt;
  const auto* list = tables.data<std::int32_t>().data();
  p.matched_order = order_by(p, places, list[0]);
  const Tables t(p);
  if (std::cmp_not_equal(tables.size(), t.size()))
    fail(ErrorCode::bad_file, "packed weights \"{}\" are {} numbers, wanted {}", key, tables.size(),
         t.size());
  p.matched_order->starts = list + 1;
  p.matched_order->places = reinterpret_cast<const std::uint8_t*>(list + 1 + t.starts());
  p.panels.stored = 0;
  for (std::int64_t i = 0; i < t.lists; ++i)
    p.panels.stored = std::max<std::int64_t>(p.panels.stored, p.matched_order->starts_of(i)[t.windows]);
  return tables;
}

void pack_matched(const Product& p, const Operands& o, const WeightPlaces& at, const void* weights,
                  std::byte* to) {
  const auto& r = *p.matched_order;
  const auto lists = p.groups * r.groups;
  std::fill_n(to, p.groups * p.packed_floats() * o.units().cell, std::byte{0});
  const auto us = static_cast<double>(lists * r.windows) / 4;
  parallel_for(partitioned_here(lists, us), [&](auto begin, auto end) {
    for (auto i = begin; i < end; ++i) {
      const Columns columns(p, i);
      const auto* starts = r.starts_of(i);
      for (std::int64_t w = 0; w < r.windows; ++w) {
        const Window window(p, o, at, columns, w, weights);
        const auto* places = r.places_of(i) + w * kWindow;
        const auto numbers = 4 * (starts[w + 1] - starts[w]);
        for (auto panel = i % r.groups * r.panels;
             panel < std::min((i % r.groups + 1) * r.panels, p.panels.count); ++panel) {
          const auto width = p.panels.vectors(panel) * p.panels.lanes, column = p.panels.column(panel);
          const auto here = std::min(width, columns.last - column);
          auto* out = reinterpret_cast<std::int8_t*>(to) +
                      4 * (columns.group * p.packed_floats() + p.panels.offset(panel) + starts[w] * width);
          for (std::int32_t n = 0; n < numbers; ++n) {
            const auto place = n < kWindow ? places[n] : places[r.windows * kWindow + n - kWindow];
            if (place == kZero) continue;
            for (std::int64_t j = 0; j < here; ++j)
              out[(n / 4 * width + j) * 4 + n % 4] =
                  static_cast<std::int8_t>(window.at(place, column - columns.first + j));
          }
        }
      }
    }
  });
}

}  // namespace lamina::integers
