#include "kernels/native/offers.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/move/topk_loops.h"
#include "ops/sorting.h"

namespace lamina {
namespace {

struct Selection {
  std::int64_t outer = 1, size = 1, inner = 1, k = 1;
  bool smallest = false, by_index = false, wide = false;
  WorkPartition all;  ///< of lines, several together
  std::int64_t lines() const { return outer * inner; }
  std::int64_t together() const { return inner > 1 ? 16 : 1; }  ///< vectors of the best
};

/// Positions of one line's elements, in the order wanted: best first, of equal ones the first; NaN is the
/// largest.
template <class T>
struct Better {
  const T* x;
  std::int64_t stride;
  bool smallest;
  bool operator()(std::int32_t a, std::int32_t b) const {
    const T u = x[a * stride], v = x[b * stride];
    if constexpr (std::is_floating_point_v<T>)
      if (std::isnan(u) || std::isnan(v)) {
        if (std::isnan(u) && std::isnan(v)) return a < b;
        return std::isnan(u) != smallest;
      }
    if (u == v) return a < b;
    return smallest ? u < v : u > v;
  }
};

template <class T>
class Lines {
 public:
  Lines(const Selection& c, const RunArgs& args)
      : c_(c), x_(static_cast<const T*>(args.in[0])), values_(static_cast<T*>(args.out[0])), args_(args) {}

  void run(std::int64_t begin, std::int64_t end, std::int32_t* order) const {
    for (auto line = begin; line < end;) {
      if constexpr (std::is_same_v<T, float>)
        if (const auto done = best_of_lines(line, end); done > 0) {
          line += done;
          continue;
        }
      sort(line++, order);
    }
  }

 private:
  const T* first(std::int64_t line) const {
    return x_ + line / c_.inner * c_.size * c_.inner + line % c_.inner;
  }

  void store(std::int64_t line, std::int64_t place, std::int64_t index) const {
    const auto to = (line / c_.inner * c_.k + place) * c_.inner + line % c_.inner;
    if (values_) values_[to] = first(line)[index * c_.inner];
    if (!indices()) return;
    if (c_.wide)
      static_cast<std::int64_t*>(indices())[to] = index;
    else
      static_cast<std::int32_t*>(indices())[to] = static_cast<std::int32_t>(index);
  }
  void* indices() const { return args_.out[1]; }

  template <class Before, class Earlier>
  void pick(std::int32_t* order, const Before& before, const Earlier& earlier) const {
    std::partial_sort(order, order + c_.k, order + c_.size, before);
    if (c_.by_index) std::sort(order, order + c_.k, earlier);
  }

  /// True if a line takes so long that it needs stop points.
  bool is_long() const { return c_.size >= 1 << 16; }

  std::int32_t best_of(const Better<T>& better) const {
    std::int32_t best = 0;
    const auto find = [&](auto begin, auto end) {
      for (auto i = begin; i < end; ++i)
        if (better(static_cast<std::int32_t>(i), best)) best = static_cast<std::int32_t>(i);
    };
    if (is_long())
      for_pieces(static_cast<std::size_t>(c_.size), find);
    else
      find(1, c_.size);
    return best;
  }

  void sort(std::int64_t line, std::int32_t* order) const {
    const Better<T> better{first(line), c_.inner, c_.smallest};
    if (c_.k == 1) return store(line, 0, best_of(better));
    for (std::int64_t i = 0; i < c_.size; ++i) order[i] = static_cast<std::int32_t>(i);
    if (!is_long()) {
      pick(order, better, std::less<>());
    } else {
      StopPoints points;
      pick(order, comparing(points, better), comparing(points, std::less<>()));
    }
    for (std::int64_t i = 0; i < c_.k; ++i) store(line, i, order[i]);
  }

  /// Vector code for k = 1: how many lines it has done.
  std::int64_t best_of_lines(std::int64_t line, std::int64_t end) const {
    const auto& loops = best_loops();
    if (c_.k != 1) return 0;
    if (c_.inner == 1) {
      if (c_.size < loops.lanes) return 0;
      const auto index = loops.line(first(line), c_.size, c_.smallest);
      if (index < 0) return 0;
      store(line, 0, index);
      return 1;
    }
    if (line % c_.inner + loops.lanes > c_.inner || line + loops.lanes > end) return 0;
    std::int32_t found[16];
    loops.columns(first(line), c_.size, c_.inner, c_.smallest, found);
    for (std::int64_t i = 0; i < loops.lanes; ++i)
      if (found[i] >= 0)
        store(line + i, 0, found[i]);
      else
        sort(line + i, nullptr);
    return loops.lanes;
  }

  const Selection& c_;
  const T* x_;
  T* values_;
  const RunArgs& args_;
};

template <class T>
void run(const Selection& c, const RunArgs& args) {
  parallel_for(c.all, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
    Lines<T>(c, args).run(begin * c.together(), std::min(end * c.together(), c.lines()),
                          static_cast<std::int32_t*>(args.scratch) + slot * c.size);
  });
}

using Run = void (*)(const Selection&, const RunArgs&);

Run run_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return run<float>;
    case ElementType::f64:
      return run<double>;
    case ElementType::i64:
      return run<std::int64_t>;
    case ElementType::i32:
      return run<std::int32_t>;
    case ElementType::i8:
      return run<std::int8_t>;
    case ElementType::u8:
      return run<std::uint8_t>;
    default:
      return nullptr;
  }
}

}  // namespace

void offer_topk(const NodeView& v, Answers& answers) {
  const auto& op = *v.op<TopK>();
  const auto x = v.dims(0);
  const auto run = run_of(v.element(0));
  if (!run) return answers.refuse("native", "TopK of {}", name_of(v.element(0)));
  if (element_count(x) == 0 || element_count(v.out_dims()) == 0)
    return answers.refuse("native", "empty tensors");
  const auto axis = normalize_axis(op.axis, x.size(), "axis");
  if (x[axis] > INT32_MAX) return answers.refuse("native", "an axis of {}", x[axis]);
  for (const auto layout : {Layout::plain, Layout::channels_last}) {
    if (layout == Layout::channels_last && x.size() < 3) continue;
    Selection c;
    c.size = x[axis];
    c.inner = c.size == 1 ? 1 : strides_of(x, layout)[axis];
    c.outer = static_cast<std::int64_t>(element_count(x)) / (c.size * c.inner);
    c.k = v.out_dims()[axis];
    c.smallest = op.mode == TopKMode::min;
    c.by_index = op.sort == TopKSort::index;
    c.wide = op.index_element_type == ElementType::i64;
    const auto count = static_cast<double>(element_count(x));
    const double work = c.k == 1 ? count : count * (2 + std::log2(static_cast<double>(c.k)));
    Offer o(v, fmt::format("native_topk_{}", name_of(v.element(0))), layout);
    if (v.constant(1)) o.consumed = {1};
    o.cost = cost_of(v.machine(),
                     c.k == 1 && v.element(0) == ElementType::f32 ? Family::vector_light : Family::scalar,
                     work, 4 * count);
    c.all = partitioned_here(ceil_div(c.lines(), c.together()), o.cost.us());
    o.scratch = c.k == 1 ? 0 : static_cast<std::size_t>(c.all.slots * c.size) * sizeof(std::int32_t);
    o.make = [c, run](MakeContext&) { return executable([c, run](const RunArgs& args) { run(c, args); }); };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina
