#include "kernels/native/pooling.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/cpu.h"
#include "base/parallel.h"
#include "kernels/cost.h"
#include "kernels/native/pooling_loops.h"
#include "kernels/native/stage_program.h"
#include "kernels/native/strided.h"
#include "ops/pooling.h"

namespace lamina {
namespace {

using Three = std::array<std::int64_t, 3>;

Three spatial(const Dims& x) {
  Three out{1, 1, 1};
  std::copy(x.begin() + 2, x.end(), out.end() - static_cast<std::ptrdiff_t>(x.size() - 2));
  return out;
}

struct Code {
  bool mean = false, exclude_pad = true;
  std::int64_t batch = 1, channels = 1;
  Three in{1, 1, 1}, out{1, 1, 1};
  std::array<std::vector<PoolRange>, 3> ranges;
  // Windows along the last axis that are whole, see PoolRow.
  std::int64_t whole_begin = 0, whole_end = 0, stride = 1, pad = 0;
  PoolLoops::Run rows = nullptr;
  std::shared_ptr<const StageProgram> stages;
  std::size_t out_bytes = 0;  ///< of an element behind the stages; 0: as before them
  // With indices.
  bool with_indices = false, wide_indices = true, column_major = false;
  std::int64_t index_range = 1;  ///< indices are taken modulo this
};

// What the windows are.

PoolRange clipped(std::int64_t first, std::int64_t count, std::int64_t step, std::int64_t in,
                  std::int64_t frame_end) {
  std::int64_t begin = first, inside = 0, framed = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    const auto at = first + k * step;
    framed += at < frame_end;
    if (at < 0 || at >= in) continue;
    if (inside++ == 0) begin = at;
  }
  PoolRange r;
  r.begin = static_cast<std::int32_t>(begin);
  r.count = static_cast<std::int32_t>(inside);
  r.step = static_cast<std::int32_t>(step);
  r.framed = static_cast<std::int32_t>(framed);
  return r;
}

void set_windows(Code& c, const Window& window, const Ints& kernel, const Dims& x) {
  const auto w = resolve(window, std::vector<Dim>(x.begin() + 2, x.end()), kernel);
  const std::size_t absent = 3 - kernel.size();
  for (std::size_t a = 0; a < 3; ++a) {
    const bool has = a >= absent;
    const auto of = [&](const Ints& list, std::int64_t otherwise) {
      return has ? list[a - absent] : otherwise;
    };
    const auto size = of(kernel, 1), step = of(w.dilations, 1), stride = of(w.strides, 1);
    const auto before = of(w.pads_begin, 0), after = of(w.pads_end, 0);
    for (std::int64_t o = 0; o < c.out[a]; ++o)
      c.ranges[a].push_back(clipped(o * stride - before, size, step, c.in[a], c.in[a] + after));
    if (a < 2) continue;
    c.stride = stride;
    c.pad = before;
    const auto whole = [&](std::int64_t o) {
      return o * stride >= before && o * stride - before + (size - 1) * step < c.in[a];
    };
    while (c.whole_begin < c.out[a] && !whole(c.whole_begin)) ++c.whole_begin;
    c.whole_end = c.whole_begin;
    while (c.whole_end < c.out[a] && whole(c.whole_end)) ++c.whole_end;
  }
}

void set_adaptive_windows(Code& c) {
  for (std::size_t a = 0; a < 3; ++a)
    for (std::int64_t o = 0; o < c.out[a]; ++o) {
      PoolRange r;
      r.begin = static_cast<std::int32_t>(o * c.in[a] / c.out[a]);
      r.count = static_cast<std::int32_t>(((o + 1) * c.in[a] + c.out[a] - 1) / c.out[a]) - r.begin;
      r.framed = r.count;
      c.ranges[a].push_back(r);
    }
}

double work_of(const Code& c) {
  double positions = 1;
  for (const auto& axis : c.ranges) {
    double sum = 0;
    for (const auto& r : axis) sum += r.count;
    positions *= sum;
  }
  return positions * static_cast<double>(c.batch * c.channels);
}

constexpr double kGrain = 32768;  // positions worth a thread

// Rows of outputs.

constexpr std::int64_t kTile = 4096;   // elements of a piece whose results have another size
constexpr std::int64_t kPiece = 2048;  // elements that stages get at once, where rows are shorter

/// What one thread does of the rows of all planes.
class RowRun {
 public:
  RowRun(const Code& code, Layout layout, std::size_t bytes, const RunArgs& args)
      : c_(code), args_(args), bytes_(bytes), out_bytes_(c_.out_bytes != 0 ? c_.out_bytes : bytes) {
    const bool last = layout == Layout::channels_last;
    r_.channels = last ? c_.channels : 1;
    planes_ = last ? c_.batch : c_.batch * c_.channels;
    rows_ = c_.out[0] * c_.out[1];
    row_ = c_.out[2] * r_.channels;
    picture_ = c_.in[0] * c_.in[1] * c_.in[2] * r_.channels;
    r_.x = c_.ranges[2].data();
    r_.count = c_.out[2];
    r_.y_stride = c_.in[2] * r_.channels;
    r_.z_stride = c_.in[1] * r_.y_stride;
    r_.exclude_pad = c_.exclude_pad;
    r_.whole_begin = c_.whole_begin, r_.whole_end = c_.whole_end;
    r_.stride = c_.stride, r_.pad = c_.pad;
  }

  std::int64_t rows() const { return planes_ * rows_; }

  void operator()(std::int64_t begin, std::int64_t end) {
    if (c_.stages && !c_.stages->empty()) {
      StageRun stages(*c_.stages, args_.in);
      if (out_bytes_ == bytes_)
        in_place(begin, end, stages);
      else
        through_tile(begin, end, stages);
      return;
    }
    for (auto i = begin; i < end; ++i) compute(i, out(i));
  }

 private:
  std::byte* out(std::int64_t row) const {
    return static_cast<std::byte*>(args_.out[0]) + static_cast<std::size_t>(row * row_) * out_bytes_;
  }

  void enter(std::int64_t i) {
    r_.z = c_.ranges[0][static_cast<std::size_t>(i % rows_ / c_.out[1])];
    r_.y = c_.ranges[1][static_cast<std::size_t>(i % c_.out[1])];
    r_.readable = (planes_ - i / rows_) * picture_;
    r_.in =
        static_cast<const std::byte*>(args_.in[0]) + static_cast<std::size_t>(i / rows_ * picture_) * bytes_;
  }

  void compute(std::int64_t i, void* to) {
    enter(i);
    r_.out = to;
    c_.rows(r_);
  }

  void in_place(std::int64_t begin, std::int64_t end, StageRun& stages) {
    const auto batch = std::max<std::int64_t>(1, kPiece / row_);
    for (; begin < end; begin += batch) {
      const auto until = std::min(end, begin + batch);
      for (auto i = begin; i < until; ++i) compute(i, out(i));
      stages(out(begin), out(begin), begin * row_, (until - begin) * row_);
    }
  }

  void through_tile(std::int64_t begin, std::int64_t end, StageRun& stages) {
    alignas(64) std::byte tile[kTile * sizeof(float)];
    const auto batch = kTile / row_;
    if (batch == 0) {
      for (; begin < end; ++begin) long_row(begin, tile, stages);
      return;
    }
    for (; begin < end; begin += batch) {
      const auto until = std::min(end, begin + batch);
      for (auto i = begin; i < until; ++i)
        compute(i, tile + static_cast<std::size_t>((i - begin) * row_) * bytes_);
      stages(tile, out(begin), begin * row_, (until - begin) * row_);
    }
  }

  /// A row that is longer than a tile, piece by piece.
  void long_row(std::int64_t row, std::byte* tile, StageRun& stages) {
    enter(row);
    const auto most = kTile / r_.channels;
    for (std::int64_t begin = 0; begin < r_.count; begin += most) {
      PoolRow r = r_;
      r.out = tile;
      r.x += begin;
      r.count = std::min(most, r_.count - begin);
      r.whole_begin = std::clamp<std::int64_t>(r_.whole_begin - begin, 0, r.count);
      r.whole_end = std::clamp<std::int64_t>(r_.whole_end - begin, 0, r.count);
      r.pad = r_.pad - begin * r_.stride;
      c_.rows(r);
      const auto at = begin * r.channels;
      stages(tile, out(row) + static_cast<std::size_t>(at) * out_bytes_, row * row_ + at,
             r.count * r.channels);
    }
  }

  const Code& c_;
  const RunArgs& args_;
  std::size_t bytes_, out_bytes_;
  std::int64_t planes_ = 1, rows_ = 1, row_ = 1, picture_ = 1;
  PoolRow r_;
};

void run_rows(const Code& c, Layout layout, std::size_t bytes, const RunArgs& args) {
  const RowRun all(c, layout, bytes, args);
  const auto grain = kGrain * static_cast<double>(all.rows()) / std::max(1.0, work_of(c));
  parallel_for(all.rows(), std::max<std::int64_t>(1, static_cast<std::int64_t>(grain)),
               [&](std::int64_t begin, std::int64_t end) {
                 RowRun mine = all;
                 mine(begin, end);
               });
}

// Element by element: other types, and indices.

template <class T>
void run_planes(const Code& c, const RunArgs& args) {
  const auto plane = c.in[0] * c.in[1] * c.in[2], outputs = c.out[0] * c.out[1] * c.out[2];
  const auto planes = c.batch * c.channels;
  const auto grain = kGrain / 8 * static_cast<double>(planes) / std::max(1.0, work_of(c));
  const auto find = [&](const T* in, const PoolRange& z, const PoolRange& y, const PoolRange& x, T& best) {
    std::int64_t where = -1;
    best = std::numeric_limits<T>::lowest();
    for (std::int64_t k = 0; k < z.count; ++k)
      for (std::int64_t j = 0; j < y.count; ++j) {
        auto at = ((z.begin + k * z.step) * c.in[1] + y.begin + j * y.step) * c.in[2] + x.begin;
        for (std::int64_t i = 0; i < x.count; ++i, at += x.step)
          if (where < 0 || in[at] > best) best = in[at], where = at;
      }
    return std::max<std::int64_t>(where, 0);
  };
  const auto index_of = [&](std::int64_t p, std::int64_t at) {
    if (c.column_major) {
      const auto z = at / (c.in[1] * c.in[2]), y = at / c.in[2] % c.in[1], x = at % c.in[2];
      at = (x * c.in[1] + y) * c.in[0] + z;
    }
    return (p * plane + at) % c.index_range;
  };
  parallel_for(planes, std::max<std::int64_t>(1, static_cast<std::int64_t>(grain)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto p = begin; p < end; ++p) {
                   const auto* in = static_cast<const T*>(args.in[0]) + p * plane;
                   auto o = p * outputs;
                   for (const auto& z : c.ranges[0])
                     for (const auto& y : c.ranges[1])
                       for (const auto& x : c.ranges[2]) {
                         T best;
                         const auto at = index_of(p, find(in, z, y, x, best));
                         if (args.out[0]) static_cast<T*>(args.out[0])[o] = best;
                         if (c.with_indices && args.out[1]) {
                           if (c.wide_indices)
                             static_cast<std::int64_t*>(args.out[1])[o] = at;
                           else
                             static_cast<std::int32_t*>(args.out[1])[o] = static_cast<std::int32_t>(at);
                         }
                         ++o;
                       }
                 }
               });
}

using Planes = void (*)(const Code&, const RunArgs&);

Planes planes_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return run_planes<float>;
    case ElementType::f64:
      return run_planes<double>;
    case ElementType::i64:
      return run_planes<std::int64_t>;
    case ElementType::i32:
      return run_planes<std::int32_t>;
    case ElementType::i16:
      return run_planes<std::int16_t>;
    case ElementType::i8:
      return run_planes<std::int8_t>;
    case ElementType::u8:
      return run_planes<std::uint8_t>;
    default:
      return nullptr;
  }
}

PoolLoops::Run rows_of(ElementType type, bool mean, Layout layout) {
  const auto& loops = pool_loops();
  const bool last = layout == Layout::channels_last;
  if (type == ElementType::f32)
    return mean ? (last ? loops.mean_pixels_f32 : loops.mean_line_f32)
                : (last ? loops.max_pixels_f32 : loops.max_line_f32);
  if (mean || !last) return nullptr;
  return type == ElementType::u8   ? loops.max_pixels_u8
         : type == ElementType::i8 ? loops.max_pixels_i8
                                   : nullptr;
}

void describe(const NodeView& v, Code& c) {
  const auto x = v.dims(0);
  c.batch = x[0];
  c.channels = x[1];
  c.in = spatial(x);
  c.out = spatial(v.out_dims());
  if (const auto* op = v.op<MaxPool>()) {
    set_windows(c, *op, op->kernel, x);
    c.column_major = op->storage_order == 1;
    c.wide_indices = op->index_element_type == ElementType::i64;
    for (auto i = normalize_axis(op->axis, x.size(), "axis"); i < x.size(); ++i) c.index_range *= x[i];
  } else if (const auto* mean = v.op<AvgPool>()) {
    set_windows(c, *mean, mean->kernel, x);
    c.mean = true;
    c.exclude_pad = mean->exclude_pad;
  } else {
    set_adaptive_windows(c);
    c.mean = v.op<AdaptiveAvgPool>() != nullptr;
    if (const auto* max = v.op<AdaptiveMaxPool>()) {
      c.wide_indices = max->index_element_type == ElementType::i64;
      for (std::size_t i = 2; i < x.size(); ++i) c.index_range *= x[i];
    }
  }
}

Offer offer_of(const NodeView& v, Layout layout, std::string label) {
  Offer o;
  o.label = std::move(label);
  o.inputs.assign(v.inputs(), Layout::plain);
  o.inputs[0] = layout;
  o.outputs.assign(v.outputs(), layout);
  if ((v.op<AdaptiveAvgPool>() || v.op<AdaptiveMaxPool>()) && v.constant(1)) o.consumed = {1};
  return o;
}

void offer_rows(const NodeView& v, const Code& described, Layout layout, Answers& answers) {
  auto code = std::make_shared<Code>(described);
  code->rows = rows_of(v.element(0), code->mean, layout);
  if (!code->rows)
    return answers.refuse("native", "{}: no vector code for {}", name_of(layout), name_of(v.element(0)));
  Offer o = offer_of(v, layout,
                     fmt::format("native_{}pool_{}_{}", code->mean ? "avg" : "max", name_of(effective_isa()),
                                 name_of(v.element(0))));
  const auto bytes = whole_bytes(v.element(0));
  const auto moved = static_cast<double>(bytes * (element_count(v.dims(0)) + element_count(v.out_dims())));
  // oneDNN's poolings are as fast, but its maxima begin with the lowest finite number: -inf gets lost.
  const double work = work_of(*code) * static_cast<double>(bytes) / 4;
  const bool slow = layout == Layout::plain ? code->stride > 2 : code->channels < 4;
  o.cost = slow ? cost_of(Family::scalar, work_of(*code), moved)
                : cost_of(Family::onednn_pass, 0, moved) * (layout == Layout::plain ? 3 : 1) *
                      (code->mean ? 1.05 : 0.95);
  // Windows of pixels come from the cache; those along a line begin anywhere.
  const double effort = layout == Layout::channels_last ? 0.2 : code->mean ? 1 : 0.8;
  if (!slow) o.cost = std::max(o.cost, cost_of(Family::vector_light, work) * effort);
  std::string why;
  const auto pixel = layout == Layout::channels_last ? code->channels : 1;
  const auto out_bytes = whole_bytes(v.out_element());
  if (out_bytes == bytes || (out_bytes > 0 && pixel <= kTile))
    code->stages = StageProgram::of_epilogue(v, layout, why);
  if (code->stages) {
    code->stages->add_to(o);
    code->out_bytes = out_bytes;
  } else {
    o.stages = 0;
  }
  o.make = [code, layout, bytes](MakeContext&) {
    return executable([code, layout, bytes](const RunArgs& args) { run_rows(*code, layout, bytes, args); });
  };
  answers.offers.push_back(std::move(o));
}

void offer_planes(const NodeView& v, const Code& described, Answers& answers) {
  const auto run = planes_of(v.element(0));
  if (!run || described.mean) return answers.refuse("native", "plain: pooling of {}", name_of(v.element(0)));
  auto code = std::make_shared<Code>(described);
  code->with_indices = v.outputs() > 1;
  Offer o = offer_of(v, Layout::plain, fmt::format("native_maxpool_{}", name_of(v.element(0))));
  o.stages = 0;
  o.cost = cost_of(Family::scalar, work_of(*code));
  o.make = [code, run](MakeContext&) {
    return executable([code, run](const RunArgs& args) { run(*code, args); });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace

bool is_pooling(const Op& op) {
  return op.is<MaxPool>() || op.is<AvgPool>() || op.is<AdaptiveAvgPool>() || op.is<AdaptiveMaxPool>();
}

void offer_native_pooling(const NodeView& v, Answers& answers) {
  const auto x = v.dims(0), y = v.out_dims();
  if (element_count(x) == 0 || element_count(y) == 0) return answers.refuse("native", "empty tensors");
  if (*std::max_element(x.begin() + 2, x.end()) > INT32_MAX / 2)
    return answers.refuse("native", "an axis of {}", *std::max_element(x.begin() + 2, x.end()));
  Code code;
  describe(v, code);
  if (v.outputs() == 1) {
    offer_rows(v, code, Layout::channels_last, answers);
    if (v.element(0) == ElementType::f32) return offer_rows(v, code, Layout::plain, answers);
  }
  offer_planes(v, code, answers);
}

}  // namespace lamina
