#include "kernels/native/offers.h"

#include <algorithm>
#include <cstring>

#include "base/cpu.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/move/strided.h"
#include "kernels/native/resize/loops.h"
#include "kernels/native/resize/shuffles.h"
#include "kernels/native/resize/taps.h"

namespace lamina {
namespace {

using Special = ResizeTable::Special;

/// [outer][rows][columns][inner], of which rows and columns are resized: a row of the output is blended from
/// rows of the input, then its columns from those of the blend. Without a table an axis has size 1.
struct Pass {
  std::int64_t outer = 1, inner = 1;
  ResizeTable rows, columns;
  /// Tables per element, for pixels of few elements: [taps][columns.out * inner].
  std::vector<std::int32_t> element_index;
  std::vector<float> element_weight;
  bool columns_copy = false, columns_identity = false;
  bool doubles = false;     ///< each element of a row twice
  ResizeShuffles shuffles;  ///< of other types than f32
  WorkPartition rows_made;

  std::int64_t row_in() const { return columns.in * inner; }
  std::int64_t row_out() const { return columns.out * inner; }
  std::int64_t rows_out() const { return outer * rows.out; }
  std::int64_t elements_out() const { return rows_out() * row_out(); }
};

ResizeTable single() {
  ResizeTable t;
  t.in = t.out = 1;
  t.index = {0};
  t.weight = {1};
  t.plain = {1};
  return t;
}

struct Resampling {
  std::vector<Pass> passes;
  std::int64_t slots = 1;
  std::size_t bytes = 4;  ///< of an element
  bool f32 = true;
  float outside = 0;
  std::size_t blend_bytes = 0;     ///< scratch of a slot: a blended row
  std::size_t between_bytes[2]{};  ///< scratch of results between passes
};

void expand(Pass& p) {
  const auto& t = p.columns;
  const auto count = t.out * p.inner;
  p.element_index.resize(static_cast<std::size_t>(t.taps * count));
  p.element_weight.resize(p.element_index.size());
  for (std::int64_t o = 0; o < t.out; ++o)
    for (std::int64_t k = 0; k < t.taps; ++k)
      for (std::int64_t i = 0; i < p.inner; ++i) {
        const auto to = static_cast<std::size_t>(k * count + o * p.inner + i);
        const auto from = static_cast<std::size_t>(o * t.taps + k);
        p.element_index[to] = static_cast<std::int32_t>(t.index[from] * p.inner + i);
        p.element_weight[to] = t.weight[from];
      }
}

/// Copies pixels of `bytes`.
void copy_pixels(const std::byte* in, const ResizeTable& t, std::size_t bytes, std::byte* out) {
  const auto typed = [&]<class T>(T) {
    for (std::int64_t o = 0; o < t.out; ++o)
      reinterpret_cast<T*>(out)[o] = reinterpret_cast<const T*>(in)[t.index[static_cast<std::size_t>(o)]];
  };
  switch (bytes) {
    case 1:
      return typed(std::uint8_t());
    case 2:
      return typed(std::uint16_t());
    case 4:
      return typed(std::uint32_t());
    case 8:
      return typed(std::uint64_t());
    default:
      for (std::int64_t o = 0; o < t.out; ++o)
        std::memcpy(out + static_cast<std::size_t>(o) * bytes,
                    in + static_cast<std::size_t>(t.index[static_cast<std::size_t>(o)]) * bytes, bytes);
  }
}

/// Rows [begin, end) of a pass.
class PassRows {
 public:
  PassRows(const Resampling& code, const Pass& pass, const std::byte* in, std::byte* out, std::byte* blend)
      : code_(code), pass_(pass), in_(in), out_(out), blend_(reinterpret_cast<float*>(blend)) {}

  void run(std::int64_t begin, std::int64_t end) {
    for (auto r = begin; r < end; ++r) {
      const auto o = static_cast<std::size_t>(r % pass_.rows.out);
      auto* to = out_ + static_cast<std::size_t>(r * pass_.row_out()) * code_.bytes;
      const auto special = pass_.rows.special.empty() ? Special::none : pass_.rows.special[o];
      if (special != Special::none)
        fill(to, 0, pass_.columns.out, special);
      else if (r > begin && same_as_before(o))
        std::memcpy(to, to - static_cast<std::size_t>(pass_.row_out()) * code_.bytes, row_bytes());
      else
        columns(row(r / pass_.rows.out, static_cast<std::int64_t>(o)), to);
      if (!pass_.columns.special.empty()) fill_columns(to, special == Special::outside);
    }
  }

 private:
  std::size_t row_bytes() const { return static_cast<std::size_t>(pass_.row_out()) * code_.bytes; }

  /// Row o copies what row o - 1 copied.
  bool same_as_before(std::size_t o) const {
    const auto& t = pass_.rows;
    const auto taps = static_cast<std::size_t>(t.taps);
    return o > 0 && t.plain[o] && t.plain[o - 1] && t.index[o * taps] == t.index[(o - 1) * taps] &&
           (t.special.empty() || t.special[o - 1] == Special::none);
  }

  /// The input's row, or a blend of several.
  const std::byte* row(std::int64_t outer, std::int64_t o) {
    const auto& t = pass_.rows;
    const auto at = static_cast<std::size_t>(o * t.taps);
    const auto* first = in_ + static_cast<std::size_t>(outer * t.in * pass_.row_in()) * code_.bytes;
    const auto input = [&](std::size_t k) {
      return first + static_cast<std::size_t>(t.index[at + k] * pass_.row_in()) * code_.bytes;
    };
    if (t.plain[static_cast<std::size_t>(o)]) return input(0);
    const float* from[kMostRows];
    for (std::int64_t k = 0; k < t.taps; k += kMostRows - 1) {
      // Long filters go on from what they have: the sum so far is one more row of weight 1.
      const auto n = std::min<std::int64_t>(t.taps - k, kMostRows - 1);
      float weights[kMostRows];
      for (std::int64_t i = 0; i < n; ++i) {
        from[i] = reinterpret_cast<const float*>(input(static_cast<std::size_t>(k + i)));
        weights[i] = t.weight[at + static_cast<std::size_t>(k + i)];
      }
      if (k > 0) from[n] = blend_, weights[n] = 1;
      resize_loops().rows(from, weights, n + (k > 0 ? 1 : 0), blend_, pass_.row_in());
    }
    return reinterpret_cast<const std::byte*>(blend_);
  }

  void columns(const std::byte* from, std::byte* to) const {
    const auto& t = pass_.columns;
    if (pass_.columns_identity) {
      std::memcpy(to, from, row_bytes());
    } else if (!pass_.shuffles.empty()) {
      const auto& s = pass_.shuffles;
      resize_loops().shuffled(reinterpret_cast<const std::uint8_t*>(from), s.from.data(), s.places.data(),
                              reinterpret_cast<std::uint8_t*>(to), s.bytes);
    } else if (!code_.f32) {
      copy_pixels(from, t, static_cast<std::size_t>(pass_.inner) * code_.bytes, to);
    } else {
      const auto* in = reinterpret_cast<const float*>(from);
      auto* out = reinterpret_cast<float*>(to);
      const bool copy = t.taps == 1 && pass_.columns_copy;
      if (pass_.doubles)
        resize_loops().doubled(in, out, t.in);
      else if (!pass_.element_index.empty())
        resize_loops().elements(in, pass_.element_index.data(), copy ? nullptr : pass_.element_weight.data(),
                                t.taps, out, pass_.row_out());
      else
        resize_loops().pixels(in, t.index.data(), copy ? nullptr : t.weight.data(), t.taps, out, t.out,
                              pass_.inner);
    }
  }

  void fill(std::byte* row, std::int64_t begin, std::int64_t end, Special special) const {
    auto* to = row + static_cast<std::size_t>(begin * pass_.inner) * code_.bytes;
    const auto count = (end - begin) * pass_.inner;
    if (special == Special::outside && code_.f32)
      std::fill_n(reinterpret_cast<float*>(to), count, code_.outside);
    else
      std::memset(to, 0, static_cast<std::size_t>(count) * code_.bytes);
  }
  /// In a row outside of the picture zeros stay what they are.
  void fill_columns(std::byte* row, bool outside) const {
    for (std::int64_t o = 0; o < pass_.columns.out; ++o)
      if (const auto s = pass_.columns.special[static_cast<std::size_t>(o)];
          s == Special::outside || (s == Special::zero && !outside))
        fill(row, o, o + 1, s);
  }

  static constexpr std::int64_t kMostRows = 17;
  const Resampling& code_;
  const Pass& pass_;
  const std::byte* in_;
  std::byte* out_;
  float* blend_;
};

void run(const Resampling& code, const RunArgs& args) {
  const auto* in = static_cast<const std::byte*>(args.in[0]);
  auto* scratch = static_cast<std::byte*>(args.scratch);
  auto* between = scratch + code.blend_bytes * static_cast<std::size_t>(code.slots);
  for (std::size_t p = 0; p < code.passes.size(); ++p) {
    const auto& pass = code.passes[p];
    auto* out = p + 1 == code.passes.size() ? static_cast<std::byte*>(args.out[0])
                                            : between + (p % 2 ? code.between_bytes[0] : 0);
    parallel_for(pass.rows_made, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
      PassRows(code, pass, in, out, scratch + code.blend_bytes * static_cast<std::size_t>(slot))
          .run(begin, end);
    });
    in = out;
  }
}

/// Every axis of the input; those that stay as they are have no table.
/// Tables take some 30 bytes a position.
constexpr std::int64_t kLongest = 1 << 23;

Verdict tables_of(const NodeView& v, std::vector<std::optional<ResizeTable>>& out) {
  const auto& op = *v.op<Interpolate>();
  const auto x = v.dims(0), y = v.out_dims();
  const auto pad = [](const Ints& pads, std::size_t i) { return i < pads.size() ? pads[i] : 0; };
  std::vector<ResizeAxis> axes(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    auto& a = axes[i];
    a.picture = x[i];
    a.pad = pad(op.pads_begin, i);
    a.padded = x[i] + a.pad + pad(op.pads_end, i);
    a.out = y[i];
    a.scale = ResizeScale::of_sizes(a.padded, a.out);
  }
  Ints list;
  for (std::size_t i = 0; i < x.size() && !v.has(2); ++i) list.push_back(static_cast<std::int64_t>(i));
  if (v.has(2)) {
    if (!v.constant(2)) return Verdict::no("the axes are not constant");
    list = to_ints(*v.constant(2));
  }
  const bool by_scales = op.by_scales();
  const bool crop = op.coordinate_transformation_mode == CoordinateMode::tf_crop_and_resize;
  if (by_scales && !v.constant(1)) return Verdict::no("the scales are not constant");
  if (crop && v.has(3) && !v.constant(3)) return Verdict::no("the region is not constant");
  const auto scales = by_scales ? to_floats(*v.constant(1)) : std::vector<float>();
  const auto roi = crop && v.has(3) ? to_floats(*v.constant(3)) : std::vector<float>();
  for (std::size_t k = 0; k < list.size(); ++k) {
    auto& a = axes[normalize_axis(list[k], x.size(), "axis")];
    a.resized = true;
    if (by_scales) a.scale = ResizeScale::of_number(scales[k], a.padded, a.out);
    if (!roi.empty()) a.roi_start = roi[k], a.roi_end = roi[k + list.size()];
  }
  if (op.antialias) {  // filters widen where an axis shrinks; OpenVINO's linear then takes all scales
    const auto shrinks = [](const ResizeAxis& a) { return a.resized && a.scale.shrinks(); };
    const bool all = op.mode == InterpolateMode::linear && std::any_of(axes.begin(), axes.end(), shrinks);
    for (auto& a : axes)
      if (shrinks(a) || (all && a.resized)) a.filter_scale = a.scale.value();
  }
  out.assign(x.size(), std::nullopt);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!axes[i].resized && axes[i].padded == axes[i].picture) continue;
    if (axes[i].picture > INT32_MAX || axes[i].out > kLongest)
      return Verdict::no("axis {} becomes {} long, wanted at most {}", i, axes[i].out, kLongest);
    auto table = resize_table(op, axes[i]);
    if (!table.identity()) out[i] = std::move(table);
  }
  return Verdict::yes();
}

/// Axes in memory order cut into passes: the last two neighbours together, those before one by one.
std::vector<Pass> passes_of(const std::vector<std::optional<ResizeTable>>& tables, const Dims& x,
                            Layout layout) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (layout == Layout::plain || i != 1) order.push_back(i);
  if (layout == Layout::channels_last) order.push_back(1);
  std::vector<std::size_t> resized;  // places in the order
  Dims now;
  for (std::size_t i = 0; i < order.size(); ++i) {
    now.push_back(x[order[i]]);
    if (tables[order[i]]) resized.push_back(i);
  }
  std::vector<Pass> passes;
  for (std::size_t k = 0; k < resized.size(); ++k) {
    const auto at = resized[k];
    const bool pair = k + 2 == resized.size() && resized[k + 1] == at + 1;
    Pass p;
    p.rows = *tables[order[at]];
    p.columns = pair ? *tables[order[at + 1]] : single();
    const auto end = at + (pair ? 2 : 1);
    for (std::size_t i = 0; i < at; ++i) p.outer *= now[i];
    for (std::size_t i = end; i < now.size(); ++i) p.inner *= now[i];
    now[at] = p.rows.out;
    if (pair) now[at + 1] = p.columns.out, ++k;
    if (!pair && p.inner < 16) std::swap(p.rows, p.columns);  // short rows: all of them are one row's columns
    passes.push_back(std::move(p));
  }
  return passes;
}

constexpr std::int64_t kFewElements = 4;  // pixels below this size are taken element by element

void finish(Pass& p, bool f32, std::size_t bytes) {
  const auto& t = p.columns;
  p.columns_copy = t.copies();
  p.columns_identity = t.identity();
  if (!f32 && !p.columns_identity) p.shuffles = shuffles_of(t, p.inner * static_cast<std::int64_t>(bytes));
  // Places of elements are numbers of 32 bits, those of pixels as well, but these are multiplied in 64.
  if (!f32 || p.columns_identity || p.inner >= kFewElements || p.row_in() > INT32_MAX) return;
  p.doubles = p.inner == 1 && p.columns_copy && t.out == 2 * t.in && t.taps == 1;
  for (std::int64_t o = 0; o < t.out && p.doubles; ++o)
    p.doubles = t.index[static_cast<std::size_t>(o)] == o / 2;
  if (!p.doubles) expand(p);
}

double work_of(const Pass& p) {
  const auto rows = static_cast<double>(p.rows_out());
  return rows * static_cast<double>(p.row_in()) * static_cast<double>(p.rows.taps) +
         rows * static_cast<double>(p.row_out()) * static_cast<double>(p.columns.taps) *
             (p.element_index.empty() ? 1 : 8);
}

/// Finishes the passes; what they cost together.
Cost finish(const NodeView& v, Resampling& code) {
  Cost cost;
  for (std::size_t p = 0; p < code.passes.size(); ++p) {
    auto& pass = code.passes[p];
    finish(pass, code.f32, code.bytes);
    code.blend_bytes =
        std::max(code.blend_bytes, pass.rows.copies() ? 0 : static_cast<std::size_t>(pass.row_in()) * 4);
    if (p + 1 < code.passes.size()) {
      auto& between = code.between_bytes[p % 2];
      between = std::max(between, round_up(static_cast<std::size_t>(pass.elements_out()) * code.bytes, 64u));
    }
    const auto pass_cost =
        cost_of(v.machine(), Family::vector_light, work_of(pass),
                static_cast<double>(code.bytes) *
                    static_cast<double>(pass.elements_out() + pass.outer * pass.rows.in * pass.row_in()));
    pass.rows_made = partitioned_here(pass.rows_out(), pass_cost.us());
    code.slots = std::max(code.slots, pass.rows_made.slots);
    cost += pass_cost;
  }
  code.blend_bytes = round_up(code.blend_bytes, 64u);
  return cost;
}

}  // namespace

void offer_resize(const NodeView& v, Answers& answers) {
  const auto& op = *v.op<Interpolate>();
  const auto x = v.dims(0), y = v.out_dims();
  const auto bytes = whole_bytes(v.element(0));
  if (element_count(x) == 0 || element_count(y) == 0 || bytes == 0)
    return answers.refuse("native", "empty tensors or packed elements");
  std::vector<std::optional<ResizeTable>> tables;
  if (const auto ok = tables_of(v, tables); !ok) return answers.refuse("native", "{}", ok.reason());
  const bool f32 = v.element(0) == ElementType::f32;
  const bool copies = std::all_of(tables.begin(), tables.end(),
                                  [](const auto& t) { return !t || (t->special.empty() && t->copies()); });
  if (!f32 && !copies) return answers.refuse("native", "resizing {} by weights", name_of(v.element(0)));
  for (const auto layout : {Layout::plain, Layout::channels_last}) {
    if (layout == Layout::channels_last && x.size() < 3) continue;
    Resampling code;
    code.passes = passes_of(tables, x, layout);
    code.bytes = bytes;
    code.f32 = f32;
    code.outside = static_cast<float>(op.extrapolation_value);
    if (code.passes.empty()) {  // nothing changes
      Pass p;
      p.rows = p.columns = single();
      p.inner = static_cast<std::int64_t>(element_count(x));
      code.passes.push_back(std::move(p));
    }
    if (code.passes.size() > 1 &&
        std::any_of(tables.begin(), tables.end(), [](const auto& t) { return t && !t->special.empty(); })) {
      answers.refuse("native", "{}: positions outside the picture on axes that are not neighbours",
                     name_of(layout));
      continue;
    }
    const auto cost = finish(v, code);
    Offer o(v,
            f32 ? fmt::format("native_resize_{}_f32", name_of(v.machine().isa()))
                : fmt::format("native_resize_{}", name_of(v.element(0))),
            layout);
    for (std::size_t i = 1; i < v.inputs(); ++i)
      if (v.constant(i)) o.consumed.push_back(i);
    o.stages = 0;
    o.scratch = code.blend_bytes * static_cast<std::size_t>(code.slots) + code.between_bytes[0] +
                code.between_bytes[1];
    o.cost = cost;
    o.make = [shared = std::make_shared<const Resampling>(std::move(code))](MakeContext&) {
      return executable([shared](const RunArgs& args) { run(*shared, args); });
    };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina
