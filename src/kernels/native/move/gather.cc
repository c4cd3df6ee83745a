/// Gather, GatherElements and GatherND of any whole-byte type: moves of bytes.
#include "ops/gathering.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/move/indices.h"
#include "kernels/native/move/strided.h"

namespace lamina {
Verdict takes_indices(const NodeView& v, std::size_t input) {
  const auto type = v.element(input);
  if (type == ElementType::i64 || type == ElementType::i32) return Verdict::yes();
  return Verdict::no("indices of {}, wanted i32 or i64", name_of(type));
}

void ByteRuns::run(const std::byte* from, std::byte* to, bool on_threads) const {
  const auto count = static_cast<std::int64_t>(runs_.size());
  const auto copy = [&](std::int64_t time, std::int64_t begin, std::int64_t end) {
    auto* const there = to + time * to_step_;
    const auto* const here = from + time * from_step_;
    for (auto i = begin; i < end; ++i) {
      const auto& r = runs_[static_cast<std::size_t>(i)];
      copy_bytes(there + r.to, here + r.from, r.bytes);
    }
  };
  if (count == 0) return;
  const auto divided = [&](std::int64_t units, std::int64_t bytes) {
    return on_threads ? moves(units, bytes) : WorkPartition{units, units, 1};
  };
  const auto bytes = bytes_ + 16 * count;
  if (times_ < count) {
    const auto runs = divided(count, bytes / count);
    for (std::int64_t time = 0; time < times_; ++time)
      parallel_for(runs, [&](std::int64_t begin, std::int64_t end) { copy(time, begin, end); });
    return;
  }
  parallel_for(divided(times_, bytes), [&](std::int64_t begin, std::int64_t end) {
    for (auto time = begin; time < end; ++time) copy(time, 0, count);
  });
}

namespace {

constexpr std::size_t kMostRuns = 65536;  // known beforehand

std::int64_t product(const Dims& dims, std::size_t from, std::size_t to) {
  std::int64_t n = 1;
  for (auto i = from; i < to; ++i) n *= dims[i];
  return n;
}

/// Slices of data[batch][outer][size][inner] by indices[batch][count]; inner in bytes.
struct Slices {
  std::int64_t batch, outer, size, inner, count;
  bool wide, zeros;
  WorkPartition all;  ///< of the output's slices

  std::int64_t total() const { return batch * outer * count; }
  /// Where slice t of the output, in its order, comes from; below 0 where index() is.
  template <class Index>
  std::int64_t source(std::int64_t t, const Index& index) const {
    const auto i = t % count, rest = t / count, at = index(rest / outer * count + i);
    return at < 0 ? at : (rest * size + at) * inner;
  }
};

void run(const Slices& s, const RunArgs& args) {
  const auto* data = static_cast<const std::byte*>(args.in[0]);
  auto* out = static_cast<std::byte*>(args.out[0]);
  const Indices indices(args.in[1], s.wide);
  const auto index = [&](std::int64_t i) {
    return s.zeros ? indices.found(i, s.size) : indices.within(i, s.size, "Gather");
  };
  parallel_for(s.all, [&](std::int64_t begin, std::int64_t end) {
    for (auto t = begin; t < end; ++t) {
      const auto from = s.source(t, index);
      if (from < 0)
        std::memset(out + t * s.inner, 0, static_cast<std::size_t>(s.inner));
      else
        copy_bytes(out + t * s.inner, data + from, s.inner);
    }
  });
}

Offer offer_of(const NodeView& v, std::string label) {
  Offer o(v, std::move(label), Layout::plain);
  o.cost = cost_of(v.machine(), Family::copy, 0,
                   2.0 * static_cast<double>(whole_bytes(v.element(0)) * element_count(v.out_dims()))) +
           calls_of(v.machine(), Family::gather_index, static_cast<double>(element_count(v.dims(1))));
  return o;
}

/// Copies known beforehand, when the indices are constant and valid.
std::optional<ByteRuns> known_runs(const Slices& s, const Tensor* indices) {
  // Without a batch of their own, the same indices serve all outer slices.
  const auto each = s.batch == 1 ? s.count : s.total();
  if (!indices || each > (std::int64_t{1} << 22)) return std::nullopt;
  const auto list = to_ints(*indices);
  ByteRuns runs;
  for (std::int64_t t = 0; t < each; ++t) {
    bool valid = true;
    const auto from = s.source(t, [&](std::int64_t i) {
      const auto index = list[static_cast<std::size_t>(i)];
      valid = index >= -s.size && index < s.size;
      if (!valid) return std::int64_t{-1};
      return index < 0 ? index + s.size : index;
    });
    if (!valid) return std::nullopt;  // the error, or the zeros, belong to the run
    runs.add(t * s.inner, from, s.inner);
    if (runs.size() > kMostRuns) return std::nullopt;
  }
  if (s.batch == 1) runs.repeat(s.outer, s.count * s.inner, s.size * s.inner);
  return runs;
}

void offer_slices(const NodeView& v, Slices s, Answers& answers) {
  Offer o = offer_of(v, "native_gather");
  s.all = partitioned_here(s.total(), o.cost.us());
  if (v.inputs() > 2) o.consumed = {2};
  if (auto runs = known_runs(s, v.constant(1))) {
    o.consumed.push_back(1);
    o.cost = std::min(o.cost,
                      cost_of(v.machine(), Family::copy, 0, 2.0 * static_cast<double>(s.total() * s.inner)) +
                          calls_of(v.machine(), Family::copy_run, static_cast<double>(runs->count())));
    o.make = [runs = std::make_shared<const ByteRuns>(std::move(*runs))](MakeContext&) {
      return executable([runs](const RunArgs& args) {
        runs->run(static_cast<const std::byte*>(args.in[0]), static_cast<std::byte*>(args.out[0]), true);
      });
    };
  } else {
    o.make = [s](MakeContext&) { return executable([s](const RunArgs& args) { run(s, args); }); };
  }
  answers.offers.push_back(std::move(o));
}

void offer_gather_slices(const NodeView& v, const Gather& op, Answers& answers) {
  if (!v.constant(2)) return answers.refuse("native", "the axis is not constant");
  const auto x = v.dims(0), indices = v.dims(1);
  const auto axis = normalize_axis(to_ints(*v.constant(2)).at(0), x.size(), "axis");
  const auto batch = static_cast<std::size_t>(
      op.batch_dims < 0 ? op.batch_dims + static_cast<std::int64_t>(indices.size()) : op.batch_dims);
  Slices s{};
  s.batch = product(x, 0, batch);
  s.outer = product(x, batch, axis);
  s.size = x[axis];
  s.inner = product(x, axis + 1, x.size()) * static_cast<std::int64_t>(whole_bytes(v.element(0)));
  s.count = product(indices, batch, indices.size());
  s.wide = v.element(1) == ElementType::i64;
  s.zeros = op.out_of_range == OutOfRange::zeros;
  offer_slices(v, s, answers);
}

/// Tuples of indices that address the first axes after the batch.
struct Tuples {
  std::int64_t count, per_batch, batch_bytes, inner;
  std::vector<std::int64_t> sizes, strides;  // bytes
  bool wide;
  WorkPartition all;
};

void run_tuples(const Tuples& t, const RunArgs& args) {
  const auto* data = static_cast<const std::byte*>(args.in[0]);
  auto* out = static_cast<std::byte*>(args.out[0]);
  const Indices indices(args.in[1], t.wide);
  const auto depth = static_cast<std::int64_t>(t.sizes.size());
  parallel_for(t.all, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) {
      auto from = i / t.per_batch * t.batch_bytes;
      for (std::int64_t k = 0; k < depth; ++k)
        from += indices.within(i * depth + k, t.sizes[static_cast<std::size_t>(k)], "GatherND") *
                t.strides[static_cast<std::size_t>(k)];
      copy_bytes(out + i * t.inner, data + from, t.inner);
    }
  });
}

void offer_gather_nd(const NodeView& v, const GatherND& op, Answers& answers) {
  const auto x = v.dims(0), indices = v.dims(1);
  const auto batch = static_cast<std::size_t>(op.batch_dims);
  const auto depth = static_cast<std::size_t>(indices.back());
  const auto bytes = static_cast<std::int64_t>(whole_bytes(v.element(0)));
  Tuples t{};
  t.count = product(indices, 0, indices.size() - 1);
  t.per_batch = std::max<std::int64_t>(1, product(indices, batch, indices.size() - 1));
  t.batch_bytes = product(x, batch, x.size()) * bytes;
  t.inner = product(x, batch + depth, x.size()) * bytes;
  for (std::size_t k = 0; k < depth; ++k) {
    t.sizes.push_back(x[batch + k]);
    t.strides.push_back(product(x, batch + k + 1, x.size()) * bytes);
  }
  t.wide = v.element(1) == ElementType::i64;
  Offer o = offer_of(v, "native_gather_nd");
  t.all = partitioned_here(t.count, o.cost.us());
  o.make = [t](MakeContext&) { return executable([t](const RunArgs& args) { run_tuples(t, args); }); };
  answers.offers.push_back(std::move(o));
}

/// Element by element: rows of the indices' last axis.
struct Elements {
  Dims rows;          ///< dims of the indices before the last
  Dims data_strides;  ///< of those axes; 0 for the gathered one
  std::int64_t last, size, stride;
  bool along_last, wide;
  WorkPartition all;  ///< of rows
};

template <class T>
void run_elements(const Elements& e, const RunArgs& args) {
  const auto* data = static_cast<const T*>(args.in[0]);
  auto* out = static_cast<T*>(args.out[0]);
  const Indices indices(args.in[1], e.wide);
  parallel_for(e.all, [&](std::int64_t begin, std::int64_t end) {
    for (auto r = begin; r < end; ++r) {
      std::int64_t base = 0, rest = r;
      for (std::size_t a = e.rows.size(); a-- > 0; rest /= e.rows[a])
        base += rest % e.rows[a] * e.data_strides[a];
      const auto first = r * e.last;
      for (std::int64_t j = 0; j < e.last; ++j)
        out[first + j] = data[base + indices.within(first + j, e.size, "GatherElements") * e.stride +
                              (e.along_last ? 0 : j)];
    }
  });
}

void offer_elements(const NodeView& v, const GatherElements& op, Answers& answers) {
  const auto x = v.dims(0), shape = v.dims(1);
  const auto axis = normalize_axis(op.axis, x.size(), "axis");
  const auto strides = strides_of(x, Layout::plain);
  Elements e{};
  e.rows.assign(shape.begin(), shape.end() - 1);
  e.data_strides.assign(strides.begin(), strides.end() - 1);
  e.along_last = axis + 1 == x.size();
  if (!e.along_last) e.data_strides[axis] = 0;
  e.last = shape.back();
  e.size = x[axis];
  e.stride = strides[axis];
  e.wide = v.element(1) == ElementType::i64;
  using Run = void (*)(const Elements&, const RunArgs&);
  const auto bytes = whole_bytes(v.element(0));
  const Run run = bytes == 1   ? run_elements<std::uint8_t>
                  : bytes == 2 ? run_elements<std::uint16_t>
                  : bytes == 4 ? run_elements<std::uint32_t>
                               : run_elements<std::uint64_t>;
  Offer o = offer_of(v, "native_gather_elements");
  e.all = partitioned_here(product(e.rows, 0, e.rows.size()), o.cost.us());
  o.make = [e, run](MakeContext&) { return executable([e, run](const RunArgs& args) { run(e, args); }); };
  answers.offers.push_back(std::move(o));
}

}  // namespace

bool is_gathering(const Op& op) { return op.is<Gather>() || op.is<GatherElements>() || op.is<GatherND>(); }

void offer_gathering(const NodeView& v, Answers& answers) {
  const auto bytes = whole_bytes(v.element(0));
  if (bytes == 0 || bytes > 8) return answers.refuse("native", "elements of {}", name_of(v.element(0)));
  if (const auto ok = takes_indices(v, 1); !ok) return answers.refuse("native", "{}", ok.reason());
  if (element_count(v.out_dims()) == 0) return answers.refuse("native", "empty tensors");
  if (const auto* op = v.op<Gather>()) return offer_gather_slices(v, *op, answers);
  if (const auto* op = v.op<GatherND>()) return offer_gather_nd(v, *op, answers);
  offer_elements(v, *v.op<GatherElements>(), answers);
}

}  // namespace lamina
