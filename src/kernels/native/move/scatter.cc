/// ScatterUpdate, ScatterNDUpdate and ScatterElementsUpdate: a copy of the data, then moves of bytes, or
/// sums, products, minima and maxima of f32, i32 and i64.
#include <algorithm>
#include <cmath>

#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/move/indices.h"
#include "kernels/native/move/strided.h"
#include "ops/gathering.h"

namespace lamina {
namespace {

constexpr std::size_t kMostRuns = 65536;  // known beforehand

enum class How : std::uint8_t { replace, sum, sub, prod, min, max };

/// Piece i of the updates, `inner` elements long, goes to an element of the data that tuples of indices or
/// its own place address.
struct Updates {
  How how = How::replace;
  bool wide = true;
  std::int64_t pieces = 0, inner = 1;
  std::int64_t bytes = 4;                    ///< of an element
  std::vector<std::int64_t> sizes, strides;  ///< of the axes that a tuple addresses
  // A place of its own: piece i stands for position i in `shape`, with these strides in the data; 0 for axes
  // that the index addresses.
  Dims shape, own_strides;
  std::int64_t index_count = 0;  ///< indices repeat after so many; 0: never
  std::int64_t data_bytes = 0;

  /// Where piece i goes, in elements. `index(k, size)`: index k, checked.
  template <class Index>
  std::int64_t target(std::int64_t i, const Index& index) const {
    std::int64_t at = 0, rest = i;
    for (std::size_t a = shape.size(); a-- > 0; rest /= shape[a]) at += rest % shape[a] * own_strides[a];
    auto k = i;
    if (index_count > 0) k %= index_count;
    const auto depth = static_cast<std::int64_t>(sizes.size());
    for (std::int64_t d = 0; d < depth; ++d)
      at += index(k * depth + d, sizes[static_cast<std::size_t>(d)]) * strides[static_cast<std::size_t>(d)];
    return at;
  }
};

void copy_data(const Updates& c, const RunArgs& args) {
  if (args.out[0] != args.in[0]) std::memcpy(args.out[0], args.in[0], static_cast<std::size_t>(c.data_bytes));
}

void replace(const Updates& c, const RunArgs& args, const void* indices) {
  copy_data(c, args);
  const Indices list(indices, c.wide);
  const auto* updates = static_cast<const std::byte*>(args.in[2]);
  auto* out = static_cast<std::byte*>(args.out[0]);
  const auto bytes = c.inner * c.bytes;
  const auto index = [&](std::int64_t k, std::int64_t size) { return list.within(k, size, "Scatter"); };
  for (std::int64_t i = 0; i < c.pieces; ++i)
    copy_bytes(out + c.target(i, index) * c.bytes, updates + i * bytes, bytes);
}

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  return false;
}

/// NaN stays.
template <class T>
T joined(How how, T old, T update) {
  using Wrapping = std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>;
  using U = typename Wrapping::type;  // integers wrap
  const auto a = static_cast<U>(old), b = static_cast<U>(update);
  switch (how) {
    case How::sum:
      return static_cast<T>(a + b);
    case How::sub:
      return static_cast<T>(a - b);
    case How::prod:
      return static_cast<T>(a * b);
    case How::min:
      return is_nan(old) || old < update ? old : update;
    case How::max:
      return is_nan(old) || old > update ? old : update;
    case How::replace:
      break;
  }
  return update;
}

template <class T>
void join(const Updates& c, const RunArgs& args, const void* indices) {
  copy_data(c, args);
  const Indices list(indices, c.wide);
  const auto* updates = static_cast<const T*>(args.in[2]);
  auto* out = static_cast<T*>(args.out[0]);
  const auto index = [&](std::int64_t k, std::int64_t size) { return list.within(k, size, "Scatter"); };
  for (std::int64_t i = 0; i < c.pieces; ++i) {
    T* to = out + c.target(i, index);
    for (std::int64_t j = 0; j < c.inner; ++j) to[j] = joined(c.how, to[j], updates[i * c.inner + j]);
  }
}

using Run = void (*)(const Updates&, const RunArgs&, const void*);

Run run_of(How how, ElementType type) {
  if (how == How::replace) return replace;
  switch (type) {
    case ElementType::f32:
      return join<float>;
    case ElementType::i64:
      return join<std::int64_t>;
    case ElementType::i32:
      return join<std::int32_t>;
    default:
      return nullptr;
  }
}

std::int64_t product(const Dims& dims, std::size_t from, std::size_t to) {
  std::int64_t n = 1;
  for (auto i = from; i < to; ++i) n *= dims[i];
  return n;
}

void describe_nd(const NodeView& v, Updates& c) {
  const auto data = v.dims(0), indices = v.dims(1);
  const auto depth = static_cast<std::size_t>(indices.back());
  const auto strides = strides_of(data, Layout::plain);
  c.pieces = product(indices, 0, indices.size() - 1);
  c.inner = product(data, depth, data.size());
  c.sizes.assign(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(depth));
  c.strides.assign(strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(depth));
}

void describe_slices(const NodeView& v, std::size_t axis, Updates& c) {
  const auto data = v.dims(0);
  const auto strides = strides_of(data, Layout::plain);
  const auto count = static_cast<std::int64_t>(element_count(v.dims(1))), outer = product(data, 0, axis);
  c.pieces = outer * count;
  c.inner = product(data, axis + 1, data.size());
  c.sizes = {data[axis]};
  c.strides = {strides[axis]};
  c.shape = {outer, count};
  c.own_strides = {strides[axis] * data[axis], 0};
  c.index_count = count;
}

void describe_elements(const NodeView& v, std::size_t axis, Updates& c) {
  const auto data = v.dims(0);
  const auto strides = strides_of(data, Layout::plain);
  c.shape = v.dims(1);
  c.pieces = static_cast<std::int64_t>(element_count(c.shape));
  c.own_strides.assign(strides.begin(), strides.end());
  c.own_strides[axis] = 0;
  c.sizes = {data[axis]};
  c.strides = {strides[axis]};
}

Verdict describe(const NodeView& v, Updates& c) {
  std::size_t axis = 0;
  if (!v.op<ScatterNDUpdate>()) {
    if (!v.constant(3)) return Verdict::no("the axis is not constant");
    axis = normalize_axis(to_ints(*v.constant(3)).at(0), v.dims(0).size(), "axis");
  }
  if (const auto* op = v.op<ScatterNDUpdate>()) {
    constexpr How kHow[] = {How::replace, How::sum, How::sub, How::prod, How::min, How::max};
    c.how = kHow[static_cast<std::size_t>(op->reduction)];
    describe_nd(v, c);
  } else if (const auto* elements = v.op<ScatterElementsUpdate>()) {
    if (elements->reduction == ElementsReduction::mean) return Verdict::no("means of several updates");
    if (elements->reduction != ElementsReduction::none && !elements->use_init_val)
      return Verdict::no("a reduction without the data's own elements");
    constexpr How kHow[] = {How::replace, How::sum, How::prod, How::min, How::max};
    c.how = kHow[static_cast<std::size_t>(elements->reduction)];
    describe_elements(v, axis, c);
  } else {
    describe_slices(v, axis, c);
  }
  return Verdict::yes();
}

/// Replacements known beforehand, when the indices are constant and valid.
std::optional<ByteRuns> known_runs(const Updates& c, const Tensor* indices) {
  // All outer slices may share the same indices.
  const auto each = c.index_count > 0 ? c.index_count : c.pieces;
  if (!indices || c.how != How::replace || each > (std::int64_t{1} << 22)) return std::nullopt;
  const auto list = to_ints(*indices);
  ByteRuns runs;
  bool valid = true;
  const auto index = [&](std::int64_t k, std::int64_t size) {
    const auto i = list[static_cast<std::size_t>(k)];
    valid = valid && i >= -size && i < size;
    if (!valid) return std::int64_t{0};
    return i < 0 ? i + size : i;
  };
  for (std::int64_t i = 0; i < each; ++i) {
    const auto to = c.target(i, index) * c.bytes;
    if (!valid) return std::nullopt;  // the error belongs to the run
    runs.add(to, i * c.inner * c.bytes, c.inner * c.bytes);
    if (runs.size() > kMostRuns) return std::nullopt;
  }
  if (c.index_count > 0) runs.repeat(c.pieces / each, c.own_strides[0] * c.bytes, each * c.inner * c.bytes);
  return runs;
}

}  // namespace

bool is_scattering(const Op& op) {
  return op.is<ScatterUpdate>() || op.is<ScatterNDUpdate>() || op.is<ScatterElementsUpdate>();
}

void offer_scattering(const NodeView& v, Answers& answers) {
  const auto bytes = whole_bytes(v.element(0));
  if (bytes == 0 || bytes > 8) return answers.refuse("native", "elements of {}", name_of(v.element(0)));
  if (const auto ok = takes_indices(v, 1); !ok) return answers.refuse("native", "{}", ok.reason());
  if (element_count(v.dims(0)) == 0 || element_count(v.dims(1)) == 0 || element_count(v.dims(2)) == 0)
    return answers.refuse("native", "empty tensors");
  Updates code;
  code.bytes = static_cast<std::int64_t>(bytes);
  code.wide = v.element(1) == ElementType::i64;
  code.data_bytes = static_cast<std::int64_t>(element_count(v.dims(0)) * bytes);
  if (const auto ok = describe(v, code); !ok) return answers.refuse("native", "{}", ok.reason());
  const auto run = run_of(code.how, v.element(0));
  if (!run) return answers.refuse("native", "a reduction of {}", name_of(v.element(0)));
  Offer o(
      v,
      code.how == How::replace ? "native_scatter" : fmt::format("native_scatter_{}", name_of(v.element(0))),
      Layout::plain);
  o.in_place = {{0, 0}};
  if (v.inputs() > 3) o.consumed.push_back(3);
  const auto moved = static_cast<double>(code.data_bytes + 2 * code.pieces * code.inner * code.bytes);
  if (auto runs = known_runs(code, v.constant(1))) {
    o.consumed.push_back(1);
    o.cost = cost_of(v.machine(), Family::copy, 0, moved) +
             calls_of(v.machine(), Family::copy_run, static_cast<double>(runs->count()));
    o.make = [code, runs = std::make_shared<const ByteRuns>(std::move(*runs))](MakeContext&) {
      return executable([code, runs](const RunArgs& args) {
        copy_data(code, args);
        runs->run(static_cast<const std::byte*>(args.in[2]), static_cast<std::byte*>(args.out[0]), false);
      });
    };
  } else {
    o.cost = cost_of(v.machine(), Family::scalar, static_cast<double>(code.pieces * (code.inner + 8)), moved);
    o.make = [code, run](MakeContext&) {
      return executable([code, run](const RunArgs& args) { run(code, args, args.in[1]); });
    };
  }
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
