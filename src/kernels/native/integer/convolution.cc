/// Convolutions of u8 and i8, transposed ones too, as products whose rows are output points
/// (convolution/direct): the same regions and segments, of words instead of floats. Reads channels-last
/// tensors where they lie when a word of theirs is a word of the product, else a copy. Few channels fill no
/// words by themselves: then the copy has borders, and all taps of a line are one run of k.
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

using gemm::Product;
using integers::Operands;
using integers::SourceCopy;
using integers::WeightPlaces;
using windows::Geometry;

/// Most sums of weights, for all regions of taps.
constexpr std::int64_t kMostListed = 1 << 24;

struct IntegerConvolution {
  IntegerConvolution(const Machine& machine, const Operands& what, std::int64_t depth, std::int64_t columns)
      : operands(what), product(machine, what.arithmetic, what.rate(), depth, columns) {}

  Operands operands;
  Product product;
  WeightPlaces places;
  WorkPartition packing;  ///< of the weights
  Geometry read;          ///< as the product reads its source: without borders where lines of taps are runs
  bool copies = true;
  SourceCopy copy;
  std::size_t zero_input = 3;  ///< of the node, where the source's zero point comes at run time
  std::int64_t lists = 0;      ///< of what sums begin with
  Tensor weights, sums;  ///< packed; `sums`: of weights, or times the source's zero point, for each list
  std::array<std::vector<windows::Run>, 3> runs;  ///< whose taps lists are of
  Tensor order;                                   ///< of matched quads
  // Scratch, in bytes; sums that lie apart behind it.
  std::size_t copy_at = 0, start_at = 0, weights_at = 0, taps_at = 0, scratch = 0;

  std::int64_t start_count() const { return lists * product.groups * product.panels.padded_columns(); }
  /// Sums on the way from those of taps to those of lists: of one axis after the other.
  std::int64_t most_taps() const {
    auto count = read.taps(), most = count;
    for (std::size_t i = 3; i-- > 0;) {
      count = count / read.kernel[i] * static_cast<std::int64_t>(runs[i].size());
      most = std::max(most, count);
    }
    return most * product.groups * product.panels.columns;
  }
};

/// Taps of a line are one run of k: else words would be filled up at each tap.
bool lines_as_runs(const Geometry& g, const Operands& o) {
  return !g.transposed && g.groups == 1 && g.kernel[2] > 1 && g.dilation[2] == 1 && !o.matched() &&
         g.inputs % o.units().in_word() != 0;
}

/// The geometry with borders, so that no output reads beyond the input.
Geometry with_borders(Geometry g) {
  for (std::size_t i = 0; i < 3; ++i)
    g.in[i] = (g.out[i] - 1) * g.stride[i] + (g.kernel[i] - 1) * g.dilation[i] + 1;
  g.pad = {0, 0, 0};
  return g;
}

/// Weights [O, I / groups, taps], or transposed [I, O / groups, taps]. `together`: taps of a run.
WeightPlaces places_of(const Geometry& g, std::int64_t together) {
  const auto channels = g.inputs / g.groups, outputs = g.outputs / g.groups, taps = g.taps();
  WeightPlaces w;
  w.taps = together;
  w.runs = taps / together;
  w.channels = channels;
  w.run = together;
  w.tap = 1;
  w.channel = g.transposed ? outputs * taps : taps;
  w.column = g.transposed ? taps : channels * taps;
  w.group = outputs * channels * taps;
  return w;
}

/// The copy of a source whose geometry is g, in the form in which the product reads it: `read` differs from g
/// only by borders that lines along the last axis get.
SourceCopy source_copy(const Machine& machine, const Geometry& g, const Geometry& read, bool lines_are_runs,
                       const Operands& o, const Rows& in) {
  const auto source = convolutions::source_of(g, in);
  SourceCopy copy;
  copy.how = integers::copy_of(o);
  copy.images = g.images;
  copy.channels = g.inputs;
  for (std::size_t i = 0; i < 3; ++i) {
    copy.in[i] = g.in[i];
    copy.from[i] = lines_are_runs ? -g.pad[i] : 0;
    copy.out[i] = read.in[i];
  }
  copy.point = source.point;
  copy.channel = source.channel;
  copy.line = source.line;
  copy.plane = source.plane;
  copy.image = g.in_points() * (in.layout == Layout::plain ? g.inputs : source.point);
  copy.plan_partition(machine);
  return copy;
}

/// Takes scratch memory behind the copy for what is prepared in a run: initial values of sums, and packed
/// weights with the sums of their taps.
void take_scratch(IntegerConvolution& c, bool zero_at_run, bool constant) {
  const auto take = [&](std::int64_t bytes) {
    const auto at = c.scratch;
    c.scratch += static_cast<std::size_t>(round_up(bytes, std::int64_t{64}));
    return at;
  };
  if (zero_at_run || !constant) c.start_at = take(c.start_count() * 4);
  if (constant) return;
  c.weights_at = take(c.product.groups * c.product.packed_floats() * c.product.units().cell);
  if (c.lists > 0) c.taps_at = take(2 * c.most_taps() * 4);
}

IntegerConvolution convolution_of(const Machine& machine, const Geometry& g, const Operands& o,
                                  const Rows& in, const Epilogue& epilogue, bool constant,
                                  std::int64_t threads) {
  const bool runs = lines_as_runs(g, o);
  const auto channels = g.inputs / g.groups, in_word = o.units().in_word();
  const auto w = places_of(g, runs ? g.kernel[2] : 1);
  IntegerConvolution c(machine, o, w.runs * w.words(o), g.outputs / g.groups);
  c.places = w;
  c.zero_input = g.transposed ? 4 : 3;
  c.read = runs ? with_borders(g) : g;
  c.copies = in.layout == Layout::plain || !o.quads() || o.signed_source ||
             (!o.matched() && channels % in_word != 0);
  auto source = convolutions::source_of(g, in);
  if (c.copies) {
    c.copy = source_copy(machine, g, c.read, runs, o, in);
    source = convolutions::source_of(c.read, Rows(in.element, Layout::channels_last, g.inputs));
    c.scratch = static_cast<std::size_t>(c.copy.bytes());
  }
  source.in_word = in_word;
  if (o.matched()) source.words = w.words(o);
  auto folded = c.read;
  if (runs) {
    folded.inputs *= g.kernel[2];
    folded.kernel[2] = 1;
  }
  if (o.compensated()) {
    c.lists = 1;
    for (std::size_t i = 0; i < 3; ++i) {
      c.runs[i] = windows::runs_of(c.read, i);
      c.lists *= static_cast<std::int64_t>(c.runs[i].size());
    }
  }
  c.product.epilogue = epilogue;
  convolutions::add_regions(folded, source, threads, c.product);
  if (runs) c.product.batches = {};
  if (runs) c.product.batches.add(g.images, {c.read.in_points() * g.inputs, 0, g.out_points()});
  c.packing = integers::packing_of(c.product);
  take_scratch(c, o.zero_at_run, constant);
  return c;
}

/// Sums of weights of all taps as those of the taps of each run of an axis.
void sum_runs(const std::int32_t* taps, std::int64_t outer, std::int64_t count,
              const std::vector<windows::Run>& runs, std::int64_t inner, std::int32_t* to) {
  for (std::int64_t i = 0; i < outer; ++i)
    for (const auto& run : runs) {
      std::fill_n(to, inner, 0);
      for (std::int64_t t = 0; t < run.tap_count; ++t) {
        const auto* from = taps + (i * count + run.tap(t)) * inner;
        for (std::int64_t j = 0; j < inner; ++j) to[j] += from[j];
      }
      to += inner;
    }
}

/// Sums of weights for each list, as padded columns of all groups. `work`: twice most_taps() numbers.
void list_sums(const IntegerConvolution& c, const void* weights, std::int32_t* work, std::int32_t* to) {
  const auto& g = c.read;
  const auto& p = c.product;
  auto *sums = work, *next = work + c.most_taps();
  integers::sums_of_taps(p, c.operands, c.places, weights, sums);
  auto outer = g.taps(), inner = p.groups * p.panels.columns;
  for (std::size_t axis = 3; axis-- > 0;) {
    outer /= g.kernel[axis];
    sum_runs(sums, outer, g.kernel[axis], c.runs[axis], inner, next);
    inner *= static_cast<std::int64_t>(c.runs[axis].size());
    std::swap(sums, next);
  }
  std::fill_n(to, c.start_count(), 0);
  for (std::int64_t i = 0; i < c.lists * p.groups; ++i)
    std::copy_n(sums + i * p.panels.columns, p.panels.columns, to + i * p.panels.padded_columns());
}

/// True if its k consists of windows of channels.
bool matches(const Geometry& g) {
  return !g.transposed && integers::has_windows(g.inputs / g.groups) &&
         g.taps() <= gemm::kMostMatchedSegments;
}

void pack(IntegerConvolution& c, const Tensor& source, WeightStore& store) {
  const auto& g = c.read;
  const auto& p = c.product;
  const auto& o = c.operands;
  const auto key =
      fmt::format("native_integer_{} {} {} {} {} {}", g.transposed ? "transposed" : "convolution",
                  p.panels.lanes, o.key(), g.groups, c.places.taps, c.places.runs);
  const PackedSize bytes(ElementType::u8, p.groups * p.packed_floats() * p.units().cell);
  c.weights = store.moved(source, key, bytes, [&](const Tensor& w) {
    Tensor out(ElementType::u8, {p.groups * p.packed_floats() * p.units().cell});
    integers::pack_weights(p, o, c.places, c.packing, w.to_aligned().raw(),
                           reinterpret_cast<std::byte*>(out.data<std::uint8_t>().data()));
    return out;
  });
  if (c.lists == 0) return;
  const auto shift = o.zero_at_run ? 0 : o.shifted(o.source_zero);
  const auto sums_key = fmt::format("{} sums {} in {} out {} pad {} stride {} dilation {}", key, shift,
                                    fmt::join(g.in, ","), fmt::join(g.out, ","), fmt::join(g.pad, ","),
                                    fmt::join(g.stride, ","), fmt::join(g.dilation, ","));
  c.sums = store.moved(source, sums_key, {ElementType::i32, c.start_count()}, [&](const Tensor& w) {
    Tensor sums(ElementType::i32, {c.start_count()});
    auto* list = sums.data<std::int32_t>().data();
    std::vector<std::int32_t> work(static_cast<std::size_t>(2 * c.most_taps()));
    list_sums(c, w.to_aligned().raw(), work.data(), list);
    if (!o.zero_at_run) integers::compensate(list, c.start_count(), shift, list);
    return sums;
  });
}

void run(const IntegerConvolution& c, const RunArgs& args) {
  auto* scratch = static_cast<std::byte*>(args.scratch);
  const auto zero = c.operands.zero(c.operands.zero_at_run ? args.in[c.zero_input] : nullptr);
  gemm::Operands o{};
  o.a = args.in[0];
  if (c.copies) {
    c.copy.run(args.in[0], zero, scratch + c.copy_at);
    o.a = scratch + c.copy_at;
  }
  if (c.weights.valid()) {
    o.b = c.weights.raw();
  } else {
    integers::pack_weights(c.product, c.operands, c.places, c.packing, args.in[1], scratch + c.weights_at);
    o.b = scratch + c.weights_at;
  }
  if (c.lists > 0) {
    auto* start = reinterpret_cast<std::int32_t*>(scratch + c.start_at);
    const auto* sums = start;
    if (c.sums.valid())
      sums = c.sums.data<std::int32_t>().data();
    else
      list_sums(c, args.in[1], reinterpret_cast<std::int32_t*>(scratch + c.taps_at), start);
    o.bias = sums;
    if (c.operands.zero_at_run || !c.sums.valid()) {
      integers::compensate(sums, c.start_count(), c.operands.shifted(zero), start);
      o.bias = start;
    }
  }
  o.add = c.product.epilogue.added_at(args, 0);
  o.c = args.out[0];
  o.inputs = args.in;
  o.apart = scratch + c.scratch;
  gemm::run(c.product, o);
}

Verdict takes_sizes(const NodeView& v) {
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
Cost filter_packing_cost(const NodeView& v) {
  if (v.constant(1)) return {};
  constexpr double kBytes = 60;  // that are moved as fast as one weight is
  return cost_of(v.machine(), Family::transpose, 0, kBytes * static_cast<double>(element_count(v.dims(1))));
}

/// Inputs that are read while the kernel is made.
void add_consumed(Offer& o, const NodeView& v, const Operands& operands) {
  if (v.constant(1)) {
    o.consumed.push_back(1);
    o.packed = {1};
  }
  const auto zero = zero_point_input(v.node().op, 0);
  if (v.has(zero) && !operands.zero_at_run) o.consumed.push_back(zero);
  if (v.has(zero + 1)) o.consumed.push_back(zero + 1);
  if (v.op<ConvolutionBackpropData>() && v.has(3)) o.consumed.push_back(3);
}

/// What makes the kernel, with the fastest operands that fit the weights.
decltype(Offer::make) maker_of(const NodeView& v, const Geometry& g, const Rows& in,
                               const std::vector<Operands>& possible, const std::optional<Operands>& matched,
                               const Epilogue& epilogue, std::int64_t threads) {
  const Tensor weights = v.constant(1) ? *v.constant(1) : Tensor();
  return [=, &machine = v.machine()](MakeContext& context) -> std::unique_ptr<Executable> {
    auto laid = epilogue;
    laid.lay(context);
    const auto per_column = g.transposed ? 0 : g.inputs / g.groups * g.taps();
    const auto what = integers::operands_for(possible, weights, per_column, context.weights);
    const auto rows = context.input(0, in);
    auto made = integers::fastest(what, matched, weights, context.weights, [&](const Operands& o) {
      return convolution_of(machine, g, o, rows, laid, weights.valid(), threads);
    });
    if (weights.valid()) pack(made, weights, context.weights);
    return executable([c = std::move(made)](const RunArgs& args) { run(c, args); });
  };
}

}  // namespace

void offer_integer_convolution(const NodeView& v, Answers& answers) {
  if (is_float(v.element(0))) return;
  const auto refuse = [&](const std::string& why) { answers.refuse("native_int8", "{}", why); };
  std::string why;
  const auto possible = integers::operands_of(v, v.out_dims()[1], why);
  if (possible.empty()) return refuse(why);
  if (const auto verdict = takes_sizes(v); !verdict) return refuse(verdict.reason());
  const auto epilogue = Epilogue::of(v, Layout::channels_last, why);
  if (!epilogue) return refuse(why);
  const Geometry g = windows::geometry_of(v);
  if (const auto n = convolutions::regions_of(g); n > convolutions::kMostRegions)
    return refuse(
        fmt::format("{} regions of planes and borders, wanted at most {}", n, convolutions::kMostRegions));
  const auto matched = matches(g) ? integers::matched_quads(v, possible[0]) : std::nullopt;
  auto all = possible;
  if (matched) all.push_back(*matched);
  const auto threads = threads_here();
  for (const auto layout : {Layout::channels_last, Layout::plain}) {
    if (layout == Layout::plain && g.inputs > 4) continue;  // copied number by number
    const auto in = Rows::of(v.element(0), v.dims(0), layout);
    Offer o;
    o.label = fmt::format("native_{}_{}", g.kind(), possible[0].label(v.machine()));
    epilogue->add_to(o, v);
    o.inputs[0] = layout;
    add_consumed(o, v, possible[0]);
    if (layout == Layout::channels_last && !epilogue->apart()) o.wide_inputs.push_back(0);
    for (const auto& operands : all) {
      const auto c =
          convolution_of(v.machine(), g, operands, in, *epilogue, v.constant(1) != nullptr, threads);
      if (c.start_count() > kMostListed)
        return refuse(fmt::format("{} sums of weights for its borders, wanted at most {}", c.start_count(),
                                  kMostListed));
      if (&operands == &all[0])
        o.cost += c.product.cost(operands.rate()) + filter_packing_cost(v) +
                  (c.copies ? c.copy.cost(v.machine()) : Cost());
      const auto apart = c.product.scratch_bytes();
      o.scratch = std::max(o.scratch, c.scratch + static_cast<std::size_t>(apart));
    }
    o.make = maker_of(v, g, in, possible, matched, *epilogue, threads);
    if (layout == Layout::channels_last)
      if (auto winograd = integers::winograd_offer(v, g, possible, *epilogue, o))
        answers.offers.push_back(std::move(*winograd));
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina
