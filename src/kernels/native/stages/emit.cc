/// Lays a body out: which piece of the output one pass takes, what must be gathered first, which buffer holds
/// what and for how long.
#include <algorithm>
#include <limits>

#include "base/work_partition.h"
#include "kernels/native/stages/code.h"
#include "kernels/native/stages/program.h"

namespace lamina::stages {
namespace {

/// Merges the axes of the target, in their order in memory, where no view tells them apart.
void merge_axes(Routine& code) {
  const Target& target = code.target;
  auto& views = code.body.views;
  const std::size_t rank = target.dims.size();
  std::vector<std::size_t> order;
  const bool last = target.layout == Layout::channels_last && rank >= 3;
  for (std::size_t i = 0; i < rank; ++i)
    if (!(last && i == 1)) order.push_back(i);
  if (last) order.push_back(1);
  std::vector<Dims> merged(views.size());
  code.dims.clear();
  for (const auto axis : order) {
    const auto size = target.dims[axis];
    if (size == 1) continue;
    bool merge = !code.dims.empty();
    for (std::size_t k = 0; k < views.size() && merge; ++k)
      merge = views[k].is_tile || merged[k].back() == views[k].axis_strides[axis] * size;
    if (merge)
      code.dims.back() *= size;
    else
      code.dims.push_back(size);
    for (std::size_t k = 0; k < views.size(); ++k)
      if (merge)
        merged[k].back() = views[k].axis_strides[axis];
      else
        merged[k].push_back(views[k].axis_strides[axis]);
  }
  if (code.dims.empty()) {
    code.dims = {1};
    for (auto& m : merged) m = {0};
  }
  for (std::size_t k = 0; k < views.size(); ++k) views[k].strides = merged[k];
}

/// How a view is read when pieces are ranges of `axis` with everything after it.
void classify(View& v, const Dims& dims, std::size_t axis) {
  const std::size_t rank = dims.size();
  const auto zero = [&](std::size_t from, std::size_t to) {
    return std::all_of(v.strides.begin() + static_cast<std::ptrdiff_t>(from),
                       v.strides.begin() + static_cast<std::ptrdiff_t>(to), [](auto s) { return s == 0; });
  };
  std::int64_t dense = 1;
  bool direct = true;
  for (std::size_t i = rank; i-- > axis; dense *= dims[i]) direct = direct && v.strides[i] == dense;
  v.access = v.is_tile || direct ? View::Access::direct
             : zero(axis, rank)  ? View::Access::scalar
                                 : View::Access::filled;
  v.moves_outside = !v.is_tile && !zero(0, axis);
  v.steady = v.access != View::Access::direct && v.strides[axis] == 0;
}

/// What is known of a value before buffers are given out.
struct Sort {
  bool vector, steady;
};
std::vector<Sort> sorts_of(const Lowered& body) {
  std::vector<Sort> out;
  for (const auto& v : body.views) out.push_back({v.access != View::Access::scalar, v.steady});
  for (const auto& o : body.operations) {
    Sort s{o.spreads, true};
    for (const int x : o.in) {
      s.vector = s.vector || out[static_cast<std::size_t>(x)].vector;
      s.steady = s.steady && out[static_cast<std::size_t>(x)].steady;
    }
    out.push_back(s);
  }
  return out;
}

/// Operations of more cycles per element are bound by arithmetic, not by their operands.
constexpr double kMostLight = 0.2;

/// Cycles of cutting blocks at that axis.
Routine::Cycles block_cycles(Routine& code, std::size_t axis, std::int64_t inner, std::int64_t room) {
  const auto size = code.dims[axis];
  const auto rows = std::min(size, std::max<std::int64_t>(1, room / inner));
  const auto block = static_cast<double>(size * inner), most = static_cast<double>(rows * inner);
  const auto pieces = static_cast<double>(ceil_div(size, rows));
  for (auto& v : code.body.views) classify(v, code.dims, axis);
  const auto sorts = sorts_of(code.body);
  Routine::Cycles cycles{(25 * pieces + 5 * static_cast<double>(code.body.views.size())) / block};
  for (std::size_t i = 0; i < sorts.size(); ++i) {
    const bool is_view = i < code.body.views.size();
    if (is_view && code.body.views[i].access != View::Access::filled) continue;
    const double times = sorts[i].steady ? 1 : pieces;  // per block
    const double elements = sorts[i].vector ? (sorts[i].steady ? most : block / pieces) : 1;
    double each = 0;
    if (is_view) {
      const auto step = code.body.views[i].strides.back();
      each = step == 0 || step == 1 ? 0.2 + 5.0 / static_cast<double>(code.dims.back()) : 1.5;
    } else {
      each = code.body.operations[i - code.body.views.size()].cycles;
    }
    cycles.all += times * (12 + elements * each) / block;
    if (!is_view && each > kMostLight) cycles.math += times * elements * each / block;
  }
  return cycles;
}

void choose_block(Routine& code, std::int64_t room) {
  double best = std::numeric_limits<double>::infinity();
  std::int64_t inner = 1;
  for (std::size_t axis = code.dims.size(); axis-- > 0 && inner <= room; inner *= code.dims[axis]) {
    const auto cycles = block_cycles(code, axis, inner, room);
    if (cycles.all >= best) continue;
    best = cycles.all;
    code.cycles = cycles;
    code.block_axis = axis;
    code.inner = inner;
  }
  const auto size = code.dims[code.block_axis];
  code.block = code.inner * size;
  code.most = code.inner * std::min(size, std::max<std::int64_t>(1, room / code.inner));
  for (auto& v : code.body.views) classify(v, code.dims, code.block_axis);
}

/// Buffers by size; what is given back is given out again.
class Buffers {
 public:
  std::uint32_t take(std::size_t bytes) {
    auto& free = free_[index(bytes)];
    if (!free.empty()) {
      const auto at = free.back();
      free.pop_back();
      return at;
    }
    const auto at = end_;
    end_ += bytes;
    return static_cast<std::uint32_t>(at);
  }
  void give_back(std::uint32_t at, std::size_t bytes) { free_[index(bytes)].push_back(at); }
  std::size_t used() const { return end_; }

 private:
  std::size_t index(std::size_t bytes) {
    const auto it = std::find(sizes_.begin(), sizes_.end(), bytes);
    if (it != sizes_.end()) return static_cast<std::size_t>(it - sizes_.begin());
    sizes_.push_back(bytes);
    free_.emplace_back();
    return sizes_.size() - 1;
  }
  std::vector<std::size_t> sizes_;
  std::vector<std::vector<std::uint32_t>> free_;
  std::size_t end_ = 0;
};

class Emitter {
 public:
  explicit Emitter(Routine& code) : code_(code), views_(code.body.views.size()) {
    const auto sorts = sorts_of(code.body);
    values_.resize(sorts.size());
    for (std::size_t i = 0; i < sorts.size(); ++i) {
      auto& value = values_[i];
      value.vector = sorts[i].vector;
      value.steady = sorts[i].steady;
      value.bytes = i < views_ ? code.body.views[i].bytes : code.body.operations[i - views_].bytes;
      value.is_view = i < views_ && code.body.views[i].access != View::Access::filled;
    }
    // The result is written piece by piece, whatever it is.
    values_.back().steady = false;
  }

  /// False when a scalar must be spread over the result first.
  bool result_is_vector() const { return values_.back().vector || code_.most == 1; }

  std::size_t run() {
    list_steps();
    find_last_uses();
    for (std::size_t s = 0; s < steps_.size(); ++s) emit(s);
    return buffers_.used();
  }

 private:
  struct Value {
    bool vector = false, steady = false;
    std::size_t bytes = 4;
    bool is_view = false;  ///< read where it lies
    bool placed = false;
    std::uint32_t buffer = 0;
    std::size_t last = 0;  ///< step
  };

  static std::size_t at(int x) { return static_cast<std::size_t>(x); }
  const Operation& operation(std::size_t value) const { return code_.body.operations[value - views_]; }

  /// Steady values first, then those of each piece; fills before their first reader.
  void list_steps() {
    std::vector<bool> listed(values_.size(), false);
    for (const bool steady : {true, false}) {
      for (std::size_t i = views_; i < values_.size(); ++i) {
        if (values_[i].steady != steady) continue;
        for (const int x : operation(i).in)
          if (at(x) < views_ && !values_[at(x)].is_view && !listed[at(x)]) {
            listed[at(x)] = true;
            steps_.push_back(at(x));
          }
        steps_.push_back(i);
      }
      if (steady) {  // fills that never change belong here, too
        for (std::size_t i = views_; i < values_.size(); ++i)
          if (!values_[i].steady)
            for (const int x : operation(i).in)
              if (at(x) < views_ && !values_[at(x)].is_view && values_[at(x)].steady && !listed[at(x)]) {
                listed[at(x)] = true;
                steps_.push_back(at(x));
              }
        steady_steps_ = steps_.size();
      }
    }
  }

  void find_last_uses() {
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      values_[steps_[s]].last = std::max(values_[steps_[s]].last, s);
      if (steps_[s] < views_) continue;
      for (const int x : operation(steps_[s]).in) {
        auto& v = values_[at(x)];
        v.last = v.steady && s >= steady_steps_ ? std::numeric_limits<std::size_t>::max() : s;
      }
    }
  }

  std::size_t buffer_bytes(const Value& v) const {
    return v.vector ? round_up(static_cast<std::size_t>(code_.most) * v.bytes, 64u) : 64;
  }

  Place place(std::size_t value) const {
    const auto& v = values_[value];
    Place p;
    p.bytes = static_cast<std::uint32_t>(v.bytes);
    if (!v.is_view) {
      p.kind = Place::Kind::buffer;
      p.index = v.buffer;
      p.shifts = v.steady && v.vector;
    } else if (code_.body.views[value].is_tile) {
      p.kind = Place::Kind::tile;
    } else {
      p.index = static_cast<std::uint32_t>(value);
      p.shifts = v.vector;
    }
    return p;
  }

  void release(std::size_t value, std::size_t step) {
    auto& v = values_[value];
    if (!v.placed || v.last != step) return;
    v.placed = false;
    buffers_.give_back(v.buffer, buffer_bytes(v));
  }

  void emit(std::size_t step) {
    const auto value = steps_[step];
    auto& v = values_[value];
    Instruction in;
    in.scalar = !v.vector;
    if (value < views_) {
      in.view = static_cast<std::uint32_t>(value);
    } else {
      const auto& o = operation(value);
      in.loop = o.loop;
      in.function = o.function;
      in.operands = static_cast<std::uint8_t>(o.in.size());
      for (std::size_t k = 0; k < o.in.size(); ++k) {
        in.in[k] = place(at(o.in[k]));
        if (values_[at(o.in[k])].vector) in.vectors |= 1u << k;
      }
      // A buffer read for the last time may take the result, element by element.
      for (const int x : o.in)
        if (values_[at(x)].vector == v.vector && values_[at(x)].bytes == v.bytes) release(at(x), step);
    }
    if (value + 1 == values_.size()) {
      in.out.kind = Place::Kind::out;
    } else {
      v.buffer = buffers_.take(buffer_bytes(v));
      v.placed = true;
      in.out = place(value);
      in.out.shifts = false;
    }
    if (value >= views_)
      for (const int x : operation(value).in) release(at(x), step);
    (step < steady_steps_ ? code_.once : code_.each).push_back(in);
  }

  Routine& code_;
  std::size_t views_;
  std::vector<Value> values_;
  std::vector<std::size_t> steps_;
  std::size_t steady_steps_ = 0;
  Buffers buffers_;
};

template <class T>
void copy(const LoopArgs& a) {
  const auto* x = static_cast<const T*>(a.in[0]);
  auto* out = static_cast<T*>(a.out);
  if (x != out) std::copy_n(x, a.count, out);
}
template <class T>
void splat(const LoopArgs& a) {
  std::fill_n(static_cast<T*>(a.out), a.count, *static_cast<const T*>(a.in[0]));
}

/// The result is one number for a whole piece: it is spread.
void add_splat(Routine& code) {
  auto& body = code.body;
  const auto last = static_cast<int>(body.views.size() + body.operations.size()) - 1;
  const auto bytes = body.operations.back().bytes;
  body.operations.push_back({splat_loop(bytes), nullptr, {last}, bytes, 0.1, true});
}

}  // namespace

Loop copy_loop(std::size_t bytes) {
  return bytes == 1   ? copy<std::uint8_t>
         : bytes == 2 ? copy<std::uint16_t>
         : bytes == 4 ? copy<std::uint32_t>
                      : copy<std::uint64_t>;
}
Loop splat_loop(std::size_t bytes) {
  return bytes == 1   ? splat<std::uint8_t>
         : bytes == 2 ? splat<std::uint16_t>
         : bytes == 4 ? splat<std::uint32_t>
                      : splat<std::uint64_t>;
}

bool emit(Routine& code, std::string& why) {
  if (code.body.views.size() > StageRun::kMostViews) {
    why = fmt::format("{} operands, at most {} fit", code.body.views.size(), StageRun::kMostViews);
    return false;
  }
  code.total = static_cast<std::int64_t>(element_count(code.target.dims));
  if (code.total == 0) return true;
  merge_axes(code);
  std::size_t needed = 0;
  for (const std::int64_t room : {1024, 512, 256, 128, 64, 32}) {
    choose_block(code, room);
    if (!Emitter(code).result_is_vector()) add_splat(code);
    code.once.clear();
    code.each.clear();
    needed = Emitter(code).run();
    // Long pieces where half of the buffer holds everything, else as long as it allows.
    if (needed <= (room > 256 ? StageRun::kBufferBytes / 2 : StageRun::kBufferBytes)) return true;
  }
  why = fmt::format("{} bytes of buffers, at most {} fit", needed, StageRun::kBufferBytes);
  return false;
}

}  // namespace lamina::stages
