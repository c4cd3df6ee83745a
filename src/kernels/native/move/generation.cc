/// CumSum and OneHot.
#include "ops/generation.h"

#include <algorithm>

#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/move/indices.h"
#include "kernels/native/move/strided.h"
#include "kernels/native/offers.h"

namespace lamina {
namespace {

struct Sums {
  std::int64_t outer, size, inner;
  bool exclusive, reverse;
  WorkPartition all{};  ///< of outer, and of pieces of inner
};

constexpr std::int64_t kColumns = 64;  // of inner, in a piece

/// Running sums, in double for floats.
template <class T, class Sum>
void run_sums(const Sums& s, const RunArgs& args) {
  const auto* x = static_cast<const T*>(args.in[0]);
  auto* y = static_cast<T*>(args.out[0]);
  const auto pieces = ceil_div(s.inner, kColumns);
  parallel_for(s.all, [&](std::int64_t begin, std::int64_t end) {
    Sum sums[kColumns];
    for (auto t = begin; t < end; ++t) {
      const auto first = t % pieces * kColumns, n = std::min(kColumns, s.inner - first);
      std::fill_n(sums, n, Sum{});
      for (std::int64_t i = 0; i < s.size; ++i) {
        const auto at = (t / pieces * s.size + (s.reverse ? s.size - 1 - i : i)) * s.inner + first;
        for (std::int64_t k = 0; k < n; ++k) {
          const auto before = sums[k];
          sums[k] += static_cast<Sum>(x[at + k]);
          y[at + k] = static_cast<T>(s.exclusive ? before : sums[k]);
        }
      }
    }
  });
}

using RunSums = void (*)(const Sums&, const RunArgs&);

RunSums sums_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return run_sums<float, double>;
    case ElementType::f64:
      return run_sums<double, double>;
    case ElementType::i64:
      return run_sums<std::int64_t, std::uint64_t>;  // integers wrap
    case ElementType::i32:
      return run_sums<std::int32_t, std::uint64_t>;
    default:
      return nullptr;
  }
}

struct Switches {
  std::int64_t outer, depth, inner;
  bool wide, normalize;
  WorkPartition all{};  ///< of outer
};

template <class T>
void run_one_hot(const Switches& s, const RunArgs& args) {
  const Indices indices(args.in[0], s.wide);
  const T on = *static_cast<const T*>(args.in[2]), off = *static_cast<const T*>(args.in[3]);
  auto* out = static_cast<T*>(args.out[0]);
  parallel_for(s.all, [&](std::int64_t begin, std::int64_t end) {
    for (auto o = begin; o < end; ++o) {
      T* to = out + o * s.depth * s.inner;
      std::fill_n(to, s.depth * s.inner, off);
      for (std::int64_t i = 0; i < s.inner; ++i) {
        auto v = indices[o * s.inner + i];
        if (v < 0 && s.normalize) v += s.depth;
        if (v >= 0 && v < s.depth) to[v * s.inner + i] = on;
      }
    }
  });
}

}  // namespace

void offer_cumsum(const NodeView& v, Answers& answers) {
  const auto& op = *v.op<CumSum>();
  const auto x = v.dims(0);
  const auto run = sums_of(v.element(0));
  if (!run) return answers.refuse("native", "CumSum of {}", name_of(v.element(0)));
  if (v.has(1) && !v.constant(1)) return answers.refuse("native", "the axis is not constant");
  if (x.empty() || element_count(x) == 0) return answers.refuse("native", "empty tensors");
  const auto axis = normalize_axis(v.has(1) ? to_ints(*v.constant(1)).at(0) : 0, x.size(), "axis");
  Sums s{1, x[axis], 1, op.exclusive, op.reverse};
  for (std::size_t i = 0; i < axis; ++i) s.outer *= x[i];
  for (std::size_t i = axis + 1; i < x.size(); ++i) s.inner *= x[i];
  Offer o(v, fmt::format("native_cumsum_{}", name_of(v.element(0))), Layout::plain);
  if (v.has(1)) o.consumed = {1};
  o.in_place = {{0, 0}};
  o.cost = cost_of(v.machine(), Family::scalar, 2 * static_cast<double>(element_count(x)),
                   2.0 * static_cast<double>(element_count(x) * whole_bytes(v.element(0))));
  s.all = partitioned_here(s.outer * ceil_div(s.inner, kColumns), o.cost.us());
  o.make = [s, run](MakeContext&) { return executable([s, run](const RunArgs& args) { run(s, args); }); };
  answers.offers.push_back(std::move(o));
}

void offer_one_hot(const NodeView& v, Answers& answers) {
  const auto& op = *v.op<OneHot>();
  const auto y = v.out_dims(), x = v.dims(0);
  if (const auto ok = takes_indices(v, 0); !ok) return answers.refuse("native", "{}", ok.reason());
  if (element_count(y) == 0) return answers.refuse("native", "empty tensors");
  const auto axis = normalize_axis(op.axis, y.size(), "axis");
  Switches s{1, y[axis], 1, v.element(0) == ElementType::i64,
             op.negative_indices_mode == NegativeIndices::normalize};
  for (std::size_t i = 0; i < axis; ++i) s.outer *= x[i];
  for (std::size_t i = axis; i < x.size(); ++i) s.inner *= x[i];
  using Run = void (*)(const Switches&, const RunArgs&);
  const auto bytes = whole_bytes(v.out_element());
  const Run run = bytes == 1   ? run_one_hot<std::uint8_t>
                  : bytes == 2 ? run_one_hot<std::uint16_t>
                  : bytes == 4 ? run_one_hot<std::uint32_t>
                  : bytes == 8 ? run_one_hot<std::uint64_t>
                               : nullptr;
  if (!run) return answers.refuse("native", "elements of {}", name_of(v.out_element()));
  Offer o(v, "native_one_hot", Layout::plain);
  if (v.constant(1)) o.consumed = {1};
  o.cost = cost_of(v.machine(), Family::scalar, 4 * static_cast<double>(element_count(x)),
                   static_cast<double>(element_count(y) * bytes));
  s.all = partitioned_here(s.outer, o.cost.us());
  o.make = [s, run](MakeContext&) { return executable([s, run](const RunArgs& args) { run(s, args); }); };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
