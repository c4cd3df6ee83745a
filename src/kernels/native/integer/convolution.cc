/// Convolutions of u8 and i8 as products whose rows are output points (convolution/direct): the same regions
/// and segments, of words instead of floats. Reads channels-last tensors where they lie when a word of theirs
/// is a word of the product, else a copy. Few channels fill no words by themselves: then the copy has
/// borders, and all taps of a line are one run of k.
#include "base/parallel.h"
#include "kernels/native/offers.h"

#include <algorithm>

#include "kernels/native/convolution/direct/source.h"
#include "kernels/native/integer/matching.h"
#include "kernels/native/integer/source.h"
#include "kernels/native/integer/weights.h"
#include "kernels/native/integer/winograd.h"
#include "ops/convolution.h"

namespace lamina {
namespace {

using convolutions::Source;
using gemm::Product;
using integers::Operands;
using integers::SourceCopy;
using integers::WeightPlaces;
using windows::Geometry;

/// Of sums of weights, for all regions of taps.
constexpr std::int64_t kMostListed = 1 << 24;

struct IntegerConvolution {
  IntegerConvolution(const Machine& machine, const Operands& what, std::int64_t depth, std::int64_t columns)
      : operands(what), product(machine, what.arithmetic, what.rate(), depth, columns) {}

  Operands operands;
  Product product;
  WeightPlaces places;
  Geometry read;  ///< as the product reads its source: without borders where lines of taps are runs
  bool copies = true;
  SourceCopy copy;
  std::int64_t lists = 0;  ///< of what sums begin with
  Tensor weights, sums;    ///< packed; `sums`: of weights, or times the source's zero point, for each list
  Tensor order;            ///< of matched quads
  // Scratch, in bytes; sums that lie apart behind it.
  std::size_t copy_at = 0, start_at = 0, weights_at = 0, scratch = 0;

  std::int64_t start_count() const { return lists * product.groups * product.panels.padded_columns(); }
};

/// Taps of a line are one run of k: else words would be filled up at each tap.
bool lines_as_runs(const Geometry& g, const Operands& o) {
  return g.groups == 1 && g.kernel[2] > 1 && g.dilation[2] == 1 && g.inputs % o.units().in_word() != 0;
}

/// All that outputs read lies in the picture.
Geometry with_borders(Geometry g) {
  for (std::size_t i = 0; i < 3; ++i)
    g.in[i] = (g.out[i] - 1) * g.stride[i] + (g.kernel[i] - 1) * g.dilation[i] + 1;
  g.pad = {0, 0, 0};
  return g;
}

IntegerConvolution convolution_of(const Machine& machine, const Geometry& g, const Operands& o,
                                  const Rows& in, const Epilogue& epilogue, bool constant,
                                  std::int64_t threads) {
  const bool runs = lines_as_runs(g, o), plain = in.layout == Layout::plain;
  const auto channels = g.inputs / g.groups, in_word = o.units().in_word();
  WeightPlaces w;
  w.taps = runs ? g.kernel[2] : 1;
  w.runs = g.taps() / w.taps;
  w.channels = channels;
  w.run = w.taps;
  w.tap = 1;
  w.channel = g.taps();
  w.column = channels * g.taps();
  w.group = g.outputs / g.groups * w.column;
  IntegerConvolution c(machine, o, w.runs * w.words(o), g.outputs / g.groups);
  c.places = w;
  c.read = runs ? with_borders(g) : g;
  c.copies = plain || !o.quads() || o.signed_source || channels % in_word != 0;
  auto source = convolutions::source_of(g, in);
  if (c.copies) {
    auto& copy = c.copy;
    copy.how = integers::copy_of(o);
    copy.images = g.images;
    copy.channels = g.inputs;
    for (std::size_t i = 0; i < 3; ++i) {
      copy.in[i] = g.in[i];
      copy.from[i] = runs ? -g.pad[i] : 0;
      copy.out[i] = c.read.in[i];
    }
    copy.point = source.point;
    copy.channel = source.channel;
    copy.line = source.line;
    copy.plane = source.plane;
    copy.image = g.in_points() * (plain ? g.inputs : source.point);
    copy.divide(machine);
    source = convolutions::source_of(c.read, Rows(in.element, Layout::channels_last, g.inputs));
    c.scratch = static_cast<std::size_t>(copy.bytes());
  }
  source.in_word = in_word;
  auto folded = c.read;
  if (runs) {
    folded.inputs *= g.kernel[2];
    folded.kernel[2] = 1;
  }
  if (o.compensated()) {
    c.lists = 1;
    for (std::size_t i = 0; i < 3; ++i)
      c.lists *= static_cast<std::int64_t>(windows::runs_of(folded, i).size());
  }
  c.product.epilogue = epilogue;
  convolutions::add_regions(folded, source, threads, c.product);
  if (runs) c.product.batches = {};
  if (runs) c.product.batches.add(g.images, {c.read.in_points() * g.inputs, 0, g.out_points()});
  const auto take = [&](std::int64_t bytes) {  // behind the copy
    const auto at = c.scratch;
    c.scratch += static_cast<std::size_t>(round_up(bytes, std::int64_t{64}));
    return at;
  };
  if (o.zero_at_run) c.start_at = take(c.start_count() * 4);
  if (!constant) c.weights_at = take(c.product.groups * c.product.packed_floats() * c.product.units().cell);
  return c;
}

/// Sums of weights of all taps as those of the taps of each run of an axis.
std::vector<std::int32_t> runs_summed(const std::vector<std::int32_t>& taps, std::int64_t count,
                                      const std::vector<windows::Run>& runs, std::int64_t inner) {
  const auto outer = static_cast<std::int64_t>(taps.size()) / (count * inner);
  std::vector<std::int32_t> out;
  out.reserve(static_cast<std::size_t>(outer * inner) * runs.size());
  for (std::int64_t i = 0; i < outer; ++i)
    for (const auto& run : runs) {
      const auto at = out.size();
      out.resize(at + static_cast<std::size_t>(inner));
      for (std::int64_t t = 0; t < run.tap_count; ++t)
        for (std::int64_t j = 0; j < inner; ++j)
          out[at + static_cast<std::size_t>(j)] +=
              taps[static_cast<std::size_t>((i * count + run.tap(t)) * inner + j)];
    }
  return out;
}

/// Sums of weights for each list, as padded columns of all groups.
Tensor listed_sums(const IntegerConvolution& c, const void* weights) {
  const auto& g = c.read;
  const auto& p = c.product;
  const auto columns = p.groups * p.panels.columns;
  std::vector<std::int32_t> sums(static_cast<std::size_t>(g.taps() * columns));
  integers::sums_of_taps(p, c.operands, c.places, weights, sums.data());
  auto inner = columns;
  for (std::size_t axis = 3; axis-- > 0;) {
    const auto runs = windows::runs_of(g, axis);
    sums = runs_summed(sums, g.kernel[axis], runs, inner);
    inner *= static_cast<std::int64_t>(runs.size());
  }
  Tensor out(ElementType::i32, {c.start_count()});
  auto* to = out.data<std::int32_t>().data();
  std::fill_n(to, c.start_count(), 0);
  for (std::int64_t i = 0; i < c.lists * p.groups; ++i)
    std::copy_n(sums.data() + i * p.panels.columns, p.panels.columns, to + i * p.panels.padded_columns());
  return out;
}

/// Its k is cut into windows of channels.
bool matches(const Geometry& g) {
  return integers::has_windows(g.inputs / g.groups) && g.taps() <= gemm::kMostReordered;
}

void pack(IntegerConvolution& c, const Tensor& source, WeightStore& store) {
  const auto& g = c.read;
  const auto& p = c.product;
  const auto& o = c.operands;
  const auto key = fmt::format("native_integer_convolution {} {} {} {} {}", p.panels.lanes, o.key(), g.groups,
                               c.places.taps, c.places.runs);
  c.weights = store.moved(source, key, [&](const Tensor& w) {
    Tensor out(ElementType::u8, {p.groups * p.packed_floats() * p.units().cell});
    integers::pack_weights(p, o, c.places, w.raw(),
                           reinterpret_cast<std::byte*>(out.data<std::uint8_t>().data()));
    return out;
  });
  if (c.lists == 0) return;
  const auto shift = o.zero_at_run ? 0 : o.shifted(o.source_zero);
  const auto sums_key = fmt::format("{} sums {} in {} out {} pad {} stride {} dilation {}", key, shift,
                                    fmt::join(g.in, ","), fmt::join(g.out, ","), fmt::join(g.pad, ","),
                                    fmt::join(g.stride, ","), fmt::join(g.dilation, ","));
  c.sums = store.moved(source, sums_key, [&](const Tensor& w) {
    auto sums = listed_sums(c, w.raw());
    auto* list = sums.data<std::int32_t>().data();
    if (!o.zero_at_run) integers::compensate(list, c.start_count(), shift, list);
    return sums;
  });
}

void run(const IntegerConvolution& c, const RunArgs& args) {
  auto* scratch = static_cast<std::byte*>(args.scratch);
  const auto zero = c.operands.zero(c.operands.zero_at_run ? args.in[3] : nullptr);
  gemm::Operands o{};
  o.a = args.in[0];
  if (c.copies) {
    c.copy.run(args.in[0], zero, scratch + c.copy_at);
    o.a = scratch + c.copy_at;
  }
  if (c.weights.valid()) {
    o.b = c.weights.raw();
  } else {
    integers::pack_weights(c.product, c.operands, c.places, args.in[1], scratch + c.weights_at);
    o.b = scratch + c.weights_at;
  }
  if (c.lists > 0) {
    o.bias = c.sums.raw();
    if (c.operands.zero_at_run) {
      auto* start = reinterpret_cast<std::int32_t*>(scratch + c.start_at);
      integers::compensate(c.sums.data<std::int32_t>().data(), c.start_count(), c.operands.shifted(zero),
                           start);
      o.bias = start;
    }
  }
  o.add = c.product.epilogue.added_at(args, 0);
  o.c = args.out[0];
  o.inputs = args.in;
  o.apart = scratch + c.scratch;
  gemm::run(c.product, o);
}

Verdict takes(const NodeView& v) {
  const auto rank = v.rank(0);
  if (rank < 3 || rank > 5) return Verdict::no("rank {}, wanted 3 to 5", rank);
  if (element_count(v.out_dims()) == 0 || element_count(v.dims(0)) == 0 || element_count(v.dims(1)) == 0)
    return Verdict::no("empty tensors");
  for (std::size_t i = 2; i < rank; ++i)
    if (v.out_dims()[i] > convolutions::kLongestAxis)
      return Verdict::no("{} outputs along an axis", v.out_dims()[i]);
  return Verdict::yes();
}

/// What packing them at each run costs.
Cost packing_cost(const NodeView& v) {
  if (v.constant(1)) return {};
  return cost_of(v.machine(), Family::transpose, 0, 4 * static_cast<double>(element_count(v.dims(1))));
}

}  // namespace

void offer_integer_convolution(const NodeView& v, Answers& answers) {
  if (is_float(v.element(0))) return;
  const auto refuse = [&](const std::string& why) { answers.refuse("native_int8", "{}", why); };
  std::string why;
  auto possible = integers::operands_of(v, v.out_dims()[1], why);
  if (possible.empty()) return refuse(why);
  if (const auto verdict = takes(v); !verdict) return refuse(verdict.reason());
  const auto epilogue = Epilogue::of(v, Layout::channels_last, why);
  if (!epilogue) return refuse(why);
  const Geometry g = windows::geometry_of(v);
  if (const auto n = convolutions::regions_of(g); n > convolutions::kMostRegions)
    return refuse(
        fmt::format("{} regions of planes and borders, wanted at most {}", n, convolutions::kMostRegions));
  // Sums of weights that are given at run time would be many.
  if (!v.constant(1) && possible[0].quads()) possible[0].arithmetic = gemm::Arithmetic::pairs;
  if (matches(g)) integers::add_matched(v, possible);
  const auto threads = threads_here();
  for (const auto layout : {Layout::channels_last, Layout::plain}) {
    if (layout == Layout::plain && g.inputs > 4) continue;  // copied number by number
    const auto in = Rows::of(v.element(0), v.dims(0), layout);
    Offer o;
    o.label = fmt::format("native_{}_{}", g.pointwise() ? "1x1" : "direct", possible[0].label(v.machine()));
    epilogue->add_to(o, v);
    o.inputs[0] = layout;
    if (v.constant(1)) {
      o.consumed.push_back(1);
      o.packed = {1};
    }
    if (v.has(3) && !possible[0].zero_at_run) o.consumed.push_back(3);
    if (v.has(4)) o.consumed.push_back(4);
    if (layout == Layout::channels_last && !epilogue->apart()) o.wide_inputs.push_back(0);
    for (const auto& operands : possible) {
      const auto c =
          convolution_of(v.machine(), g, operands, in, *epilogue, v.constant(1) != nullptr, threads);
      if (c.start_count() > kMostListed)
        return refuse(fmt::format("{} sums of weights for its borders, wanted at most {}", c.start_count(),
                                  kMostListed));
      if (&operands == &possible[0])
        o.cost += c.product.cost(operands.rate()) + packing_cost(v) +
                  (c.copies ? c.copy.cost(v.machine()) : Cost());
      const auto apart = c.product.tasks.slots * c.product.apart_bytes();
      o.scratch = std::max(o.scratch, c.scratch + static_cast<std::size_t>(apart));
    }
    const Tensor weights = v.constant(1) ? *v.constant(1) : Tensor();
    o.make = [&machine = v.machine(), g, in, possible, behind = *epilogue, threads,
              weights](MakeContext& context) -> std::unique_ptr<Executable> {
      auto laid = behind;
      laid.lay(context);
      const auto per_column = g.inputs / g.groups * g.taps();
      const auto what = integers::settled(possible, weights, per_column, context.weights);
      const auto rows = context.input(0, in);
      auto made = convolution_of(machine, g, what, rows, laid, weights.valid(), threads);
      if (const auto& last = possible.back();
          what.arithmetic < last.arithmetic && last.arithmetic == gemm::Arithmetic::matched_quads) {
        auto matched = convolution_of(machine, g, last, rows, laid, true, threads);
        if (auto order = integers::match(matched.product, last, matched.places, weights, context.weights)) {
          matched.order = *order;
          made = std::move(matched);
        }
      }
      if (weights.valid()) pack(made, weights, context.weights);
      return executable([c = std::move(made)](const RunArgs& args) { run(c, args); });
    };
    if (layout == Layout::channels_last)
      if (auto winograd = integers::winograd_offer(v, g, possible, *epilogue, o))
        answers.offers.push_back(std::move(*winograd));
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina
