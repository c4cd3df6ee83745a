/// The parent of a depthwise convolution as a binary one: the pictures are packed to bits first, where they
/// do not lie so (binary/packing.h); lines are counted from them (binary/lines.h) when windows want them.
#include <algorithm>

#include "base/divide.h"
#include "kernels/bits.h"
#include "kernels/cost.h"
#include "kernels/native/binary/packing.h"
#include "kernels/native/binary/stages.h"
#include "kernels/native/convolution/pair/run.h"
#include "ops/convolution.h"

namespace lamina::conv_depthwise {
namespace {

constexpr std::int64_t kMostTogether = 60;  ///< points by which the weights of a panel are read

/// The windows of some points, and what their counts are taken from.
struct Windows {
  const std::uint8_t* x[kMostTogether];
  const float* start[kMostTogether];
};

class BinaryParent final : public Parent {
 public:
  /// `in`: how the elements of x lie.
  BinaryParent(const NodeView& first, const binary::Packing& bits, const binary::Elements& in)
      : bits_(bits.reading(in)), source_(*first.constant(1)), in_(in) {
    segment_count_ = static_cast<std::int64_t>(bits_.segments.size());
    // So many vectors at once; without room for counts of 16 bits one after the other.
    together_ = bits_.counted() > binary::kMostCounted ? 1 : bits_.kernels->vectors;
  }

  std::string label() const override {
    return fmt::format("native_binary_depthwise_{}_f32", bits_.kernels->name);
  }
  Layout layout() const override { return in_.layout(); }
  std::int64_t panels() const override { return bits_.vectors; }
  std::int64_t channel(std::int64_t panel) const override {
    return std::min(panel * bits_.kernels->lanes, bits_.g.outputs);
  }

  void divide(const Pair&) override {}

  double microseconds(const Pair& c, double share) const override {
    const auto& g = bits_.g;
    const double points = static_cast<double>(g.images * g.out_points()),
                 in = static_cast<double>(in_.bytes(g.images * g.in_points() * g.inputs)),
                 out = 4 * points * static_cast<double>(g.outputs);
    // As of a BinaryConvolution of its own: that its sums stay near does not make them cheaper to write.
    return cost_of(*c.machine, Family::native_binary, share * bits_.work(*c.machine), in + share * out);
  }
  double read_bytes() const override { return static_cast<double>(bits_.bytes()); }

  std::shared_ptr<const Parent> made(const Pair&, MakeContext& context) const override {
    auto made = std::make_shared<BinaryParent>(*this);
    if (const auto row = context.input_row(0)) made->in_.row = row;
    made->start_ = bits_.starts(source_);
    made->weights_ = context.weights.packed(source_, fmt::format("native_binary {} 1", bits_.kernels->name),
                                            [&](const Tensor& w) { return bits_.weights(w); });
    return made;
  }

  std::int64_t scratch_bytes() const override { return static_cast<std::int64_t>(bits_.scratch_bytes()); }

  void prepare(const RunArgs& args, void* scratch) const override { bits_.pack(in_, args.in[0], scratch); }

  void make_lines(const Pair& c, const Wanted& w, StageRun* stages) const override {
    const auto count = (w.end - w.begin) * c.columns[w.columns].width,
               points = std::int64_t{bits_.kernels->points};
    const auto each = ceil_div(ceil_div(count, ceil_div(count, kMostTogether)), points) * points;
    Windows windows;
    for (std::int64_t first = 0; first < count; first += each) {
      const auto some = std::min(each, count - first);
      find_windows(c, w, first, some, windows);
      float* out = w.out + first * c.row;
      for (auto v = w.first_panel; v < w.last_panel; v += together_)
        run_vectors(c, windows, some, v, std::min(together_, w.last_panel - v),
                    out + (v - w.first_panel) * bits_.kernels->lanes);
      if (stages) apply(c, w, first, some, *stages);
    }
  }

 private:
  /// Of `count` points of the wanted lines.
  void find_windows(const Pair& c, const Wanted& w, std::int64_t first, std::int64_t count,
                    Windows& windows) const {
    const auto& columns = c.columns[w.columns];
    const auto* image = bits_.source(w.args.in[0], w.scratch) + w.image * bits_.image;
    const auto* start = start_.data<float>().data();
    const auto outputs = bits_.all_lanes();
    auto x = columns.from + first % columns.width, y = w.begin + first / columns.width;
    const auto behind = columns.from + columns.width;
    for (std::int64_t i = 0; i < count; x = columns.from, ++y) {
      const auto& py = bits_.places[1][static_cast<std::size_t>(y)];
      for (const auto end = std::min(count, i + behind - x); i < end; ++i, ++x) {
        const auto& px = bits_.places[2][static_cast<std::size_t>(x)];
        windows.x[i] = image + py.offset + px.offset;
        windows.start[i] = start + (py.kind + px.kind) * outputs;
      }
    }
  }

  void run_vectors(const Pair& c, const Windows& windows, std::int64_t count, std::int64_t vector,
                   std::int64_t vectors, float* out) const {
    binary::Tile t{};
    t.start_add = vector * bits_.kernels->lanes;
    t.w_vector = bits_.vector_bytes();
    t.w = weights_.data<std::uint8_t>().data() + vector * t.w_vector;
    t.segments = bits_.segments.data();
    t.segment_count = segment_count_;
    t.out_step = c.row;
    t.channels = channel(vector + vectors) - channel(vector);
    t.finish = c.between.finish;
    const auto& kernels = *bits_.kernels;
    const auto* run = bits_.counted() > binary::kMostCounted ? kernels.many : kernels.kernels[vectors];
    const auto tiles = ceil_div(count, kernels.points);
    for (std::int64_t i = 0, at = 0; i < tiles; ++i) {
      const auto points = (count - at) / (tiles - i);
      t.x = windows.x + at;
      t.start = windows.start + at;
      t.out = out + at * c.row;
      run[points](t);
      at += points;
    }
  }

  /// To `count` points of the wanted lines, as many at once as follow each other in the tensor between.
  void apply(const Pair& c, const Wanted& w, std::int64_t first, std::int64_t count, StageRun& stages) const {
    const auto& g = c.first;
    const auto& columns = c.columns[w.columns];
    const auto channel_0 = channel(w.first_panel), channels = channel(w.last_panel) - channel_0;
    const bool dense = channels == g.outputs && c.row == channels, whole = dense && columns.width == g.out[2];
    for (std::int64_t i = 0; i < count;) {
      const auto x = (first + i) % columns.width, y = w.begin + (first + i) / columns.width;
      const auto points = whole ? count : dense ? std::min(count - i, columns.width - x) : 1;
      const auto point = (w.image * g.out[1] + y) * g.out[2] + columns.from + x;
      float* out = w.out + (first + i) * c.row;
      stages(out, out, point * g.outputs + channel_0, points * channels);
      i += points;
    }
  }

  binary::Packing bits_;
  Tensor source_, weights_, start_;
  binary::Elements in_;
  std::int64_t segment_count_ = 0, together_ = 1;
};

}  // namespace

Parents binary_parents(const NodeView& first, std::string& why) {
  const auto& op = *first.op<BinaryConvolution>();
  const auto x = first.element(0);
  const auto g = windows::geometry_of(first);
  if (op.groups != 1)
    why = fmt::format("{} groups in the first convolution", op.groups);
  else if (x != ElementType::f32 && x != ElementType::boolean)
    why = fmt::format("element type {}, wanted f32 or boolean", name_of(x));
  else if (op.pad_value != -1 && op.pad_value != 0 && op.pad_value != 1)
    why = fmt::format("pad_value is {}, wanted -1, 0 or 1", op.pad_value);
  else if (g.taps() * g.inputs > binary::kMostExact)
    why = fmt::format("sums of {} products, exact are at most {}", g.taps() * g.inputs, binary::kMostExact);
  if (!why.empty()) return {};
  std::vector<binary::Elements> layouts{{x == ElementType::boolean, g.inputs}};
  if (x == ElementType::boolean) layouts.push_back({true, 8 * bits::point_bytes(g.inputs), true});
  std::vector<const binary::Kernels*> list{&binary::lookup_kernels(g.outputs)};
  if (const auto* kernels = binary::popcount_kernels()) list.push_back(kernels);
  Parents parents;
  for (const auto* kernels : list)
    if (const auto bits = binary::Packing::of(g, *kernels, static_cast<int>(op.pad_value)))
      for (const auto& in : layouts) parents.push_back(std::make_shared<BinaryParent>(first, *bits, in));
  if (parents.empty()) why = "windows reach far outside of the picture";
  return parents;
}

}  // namespace lamina::conv_depthwise
