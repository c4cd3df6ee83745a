/// The parent of a depthwise convolution as a binary one: the pictures are packed to bits first, where they
/// do not lie so (binary/packing.h); lines are counted from them (binary/lines.h) when windows want them.
#include <algorithm>

#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/binary/windows.h"
#include "kernels/native/convolution/pair/run.h"
#include "ops/convolution.h"

namespace lamina::conv_depthwise {
namespace {

using binary::Windows;

class BinaryParent final : public Parent {
 public:
  /// `in`: how the elements of x lie.
  BinaryParent(const NodeView& first, const binary::Packing& bits, const Rows& in)
      : bits_(bits.reading(in)), source_(*first.constant(1)), in_(in) {
    // Vectors that are processed together; one at a time if counts do not fit 16 bits.
    together_ = bits_.counted() > binary::kMostCounted ? 1 : bits_.kernels->vectors;
  }

  std::string label() const override {
    return fmt::format("native_binary_depthwise_{}_f32", bits_.kernels->name);
  }
  Layout layout() const override { return in_.layout; }
  std::int64_t panels() const override { return bits_.vectors; }
  std::int64_t channel(std::int64_t panel) const override {
    return std::min(panel * bits_.kernels->lanes, bits_.g.outputs);
  }

  void partition(const Pair&) override {}

  Cost cost(const Pair& c, double share) const override {
    const auto& g = bits_.g;
    const double points = static_cast<double>(g.images * g.out_points()),
                 in = static_cast<double>(in_.bytes(g.images * g.in_points() * g.inputs)),
                 out = 4 * points * static_cast<double>(g.outputs);
    // The cost of a separate BinaryConvolution: sums that stay in the cache are not cheaper to write.
    return cost_of(*c.machine, Family::native_binary, share * bits_.work(*c.machine), in + share * out);
  }
  double read_bytes() const override { return static_cast<double>(bits_.bytes()); }

  std::shared_ptr<const Parent> made(const Pair&, MakeContext& context) const override {
    auto made = std::make_shared<BinaryParent>(*this);
    made->in_ = context.input(0, in_);
    made->start_ = bits_.starts(source_);
    made->weights_ =
        context.weights.packed(source_, fmt::format("native_binary {} 1", bits_.kernels->name),
                               bits_.weights_size(), [&](const Tensor& w) { return bits_.weights(w); });
    return made;
  }

  std::int64_t scratch_bytes() const override { return static_cast<std::int64_t>(bits_.scratch_bytes()); }

  void prepare(const RunArgs& args, void* scratch) const override { bits_.pack(in_, args.in[0], scratch); }

  void make_lines(const Pair& c, const Wanted& w, StageRun* stages) const override {
    const auto& columns = c.columns[w.columns];
    const auto count = (w.end - w.begin) * columns.width, points = std::int64_t{bits_.kernels->points};
    const auto each = ceil_div(ceil_div(count, ceil_div(count, Windows::kMost)), points) * points;
    Windows windows(bits_, weights_, start_, {});
    for (std::int64_t first = 0; first < count; first += each) {
      const auto some = std::min(each, count - first);
      windows.find(bits_.source(w.args.in[0], w.scratch) + w.image * bits_.image, columns.from, columns.width,
                   w.begin * columns.width + first, some);
      binary::Tile t{};
      t.out_step = c.row;
      t.finish = c.between.finish;
      for (auto v = w.first_panel; v < w.last_panel; v += together_) {
        t.out = w.out + first * c.row + channel(v) - channel(w.first_panel);
        windows.run({0, v, std::min(together_, w.last_panel - v)}, t);
      }
      if (stages) apply(c, w, first, some, *stages);
    }
  }

 private:
  /// To `count` points of the wanted lines, line by line.
  void apply(const Pair& c, const Wanted& w, std::int64_t first, std::int64_t count, StageRun& stages) const {
    const auto& g = c.first;
    const auto& columns = c.columns[w.columns];
    const auto channel_0 = channel(w.first_panel), channels = channel(w.last_panel) - channel_0;
    auto rows = c.between.out;
    rows.step = c.row;
    const bool whole = columns.width == g.out[2];  // lines follow each other in the tensor between
    for (const auto end = first + count; first < end;) {
      const auto x = first % columns.width, y = w.begin + first / columns.width;
      const auto points = whole ? count : std::min(end - first, columns.width - x);
      const auto point = (w.image * g.out[1] + y) * g.out[2] + columns.from + x;
      const Sums sums(rows, w.out + first * c.row, {0, points, 0, channels}, nullptr);
      sums.apply(stages, point * g.outputs + channel_0);
      first += points;
    }
  }

  binary::Packing bits_;
  Tensor source_, weights_, start_;
  Rows in_;
  std::int64_t together_ = 1;
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
  std::vector<Rows> layouts{{x, Layout::channels_last, g.inputs}};
  if (x == ElementType::boolean) layouts.push_back({x, Layout::channels_last_bits, g.inputs});
  std::vector<const binary::Kernels*> list{&binary::lookup_kernels(first.machine().isa(), g.outputs)};
  if (const auto* kernels = binary::popcount_kernels(first.machine())) list.push_back(kernels);
  Parents parents;
  for (const auto* kernels : list)
    if (const auto bits = binary::Packing::of(g, *kernels, static_cast<int>(op.pad_value)))
      for (const auto& in : layouts) parents.push_back(std::make_shared<BinaryParent>(first, *bits, in));
  if (parents.empty()) why = "windows reach far outside the input";
  return parents;
}

}  // namespace lamina::conv_depthwise
