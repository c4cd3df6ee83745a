/// The parent of a depthwise convolution as products (gemm/product.h) of one line or several lines at a time.
#include <algorithm>

#include "base/cpu.h"
#include "base/parallel.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/convolution/direct/source.h"
#include "kernels/native/convolution/pair/run.h"
#include "kernels/native/gemm/bias.h"
#include "ops/convolution.h"

namespace lamina::conv_depthwise {
namespace {

using gemm::Product;
using windows::Geometry;

/// Bytes of x from which on it comes from farther than L2.
double far_bytes(const Machine& m) { return 2 * static_cast<double>(m.l2); }
/// Products of a few lines against those of the whole, measured: their weights come from L2 more often.
constexpr double kByLines = 1.05;
/// Products of a thread's own lines do not lose what those lose that several threads share.
constexpr double kOwnLines = 0.85;

/// Lines of the tensor between whose windows have the same taps inside.
struct Part {
  std::int64_t first, count;
  std::int64_t a_first, a_line;   ///< floats: of the first line's input, and from line to line
  std::vector<Product> products;  ///< of one line; perhaps of Pair::together() lines
};

/// `lines` lines, all of one part.
Product lines_product(const Pair& c, const convolutions::Source& s, const windows::Run& y, std::int64_t lines,
                      const Columns& columns) {
  const auto& g = c.first;
  const auto depth = windows::runs_of(g, 0).at(0);
  Product p(*c.machine, g.taps() * g.inputs, g.outputs, convolutions::run_length(g, s));
  p.epilogue = c.between;
  p.epilogue.out.step = c.row;
  for (const auto& x : windows::runs_of(g, 2)) {
    const auto first = std::max(x.first, columns.from),
               end = std::min(x.first + x.count, columns.from + columns.width);
    if (first >= end) continue;
    gemm::Region region;
    region.width = end - first;
    region.lines = lines;
    region.a_step = x.tap_count == 0 ? 0 : x.input_step * s.point;
    region.a_line = y.tap_count == 0 ? 0 : y.input_step * s.line;
    region.a_first = x.input * s.point + (first - x.first) * region.a_step;
    region.c_step = x.step;
    region.c_line = columns.width;
    region.c_first = first - columns.from;
    p.add_region(region, convolutions::segments_of(g, s, depth, y, x));
  }
  p.partition(1);
  return p;
}

std::vector<Part> parts_of(const Pair& c, const convolutions::Source& s, const Columns& columns) {
  // Stages want to know where a point is: lines of some columns do not follow each other there.
  const bool by_lines = !c.between.registers_only() && columns.width != c.first.out[2];
  std::vector<Part> parts;
  for (const auto& y : windows::runs_of(c.first, 1)) {
    const bool empty = y.tap_count == 0;
    Part part{y.first, y.count, empty ? 0 : y.input * s.line, empty ? 0 : y.input_step * s.line, {}};
    part.products.push_back(lines_product(c, s, y, 1, columns));
    if (c.together() > 1 && y.count >= c.together() && !by_lines)
      part.products.push_back(lines_product(c, s, y, c.together(), columns));
    parts.push_back(std::move(part));
  }
  return parts;
}

class ProductParent final : public Parent {
 public:
  ProductParent(const NodeView& first, Layout layout)
      : machine_(first.machine()),
        in_(Rows::of(ElementType::f32, first.dims(0), layout)),
        source_(*first.constant(1)),
        family_(Family::native_direct) {
    const auto g = windows::geometry_of(first);
    pointwise_ = g.pointwise();
    if (pointwise_) family_ = Family::native_gemm;
    const Product p(machine_, g.taps() * g.inputs, g.outputs,
                    convolutions::run_length(g, convolutions::source_of(g, in_)));
    panels_ = p.panels;
    dots_ = p.dots;
    bias_ = gemm::bias_of(first);
    in_bytes_ = static_cast<double>(g.images * g.in_points() * g.inputs) * 4;
  }

  std::string label() const override {
    return fmt::format("native_{}_depthwise_{}_f32", pointwise_ ? "1x1" : "direct", name_of(machine_.isa()));
  }
  Layout layout() const override { return in_.layout; }
  std::int64_t panels() const override { return dots_ ? 1 : panels_.count; }
  std::int64_t channel(std::int64_t panel) const override {
    return panel == panels() ? panels_.columns : panels_.column(panel);
  }

  void partition(const Pair& c) override {
    const auto s = convolutions::source_of(c.first, in_);
    in_image_ = s.plain ? c.first.inputs * s.channel : c.first.in[1] * s.line;
    in_line_ = s.plain || in_bytes_ < far_bytes(machine_) ? 0 : s.line;
    in_point_ = s.point;
    parts_.clear();
    for (const auto& columns : c.columns) parts_.push_back(parts_of(c, s, columns));
  }

  Cost cost(const Pair& c, double share) const override {
    Cost lines;
    for (const auto& parts : parts_)
      for (const auto& part : parts) {
        const bool several = part.products.size() > 1;
        lines += part.products.back().cost(family_, 0) *
                 (static_cast<double>(part.count) / static_cast<double>(several ? c.together() : 1));
      }
    const double own = threads_here() > 1 ? kOwnLines : 1;
    return lines * (share * kByLines * own * static_cast<double>(c.first.images)) +
           cost_of(machine_, family_, 0, in_bytes_);
  }
  double read_bytes() const override { return in_bytes_; }
  double fetched_bytes() const override { return in_line_ > 0 ? in_bytes_ - far_bytes(machine_) : 0; }

  std::shared_ptr<const Parent> made(const Pair& c, MakeContext& context) const override {
    auto made = std::make_shared<ProductParent>(*this);
    made->in_ = context.input(0, in_);
    if (!made->in_.dense()) made->partition(c);
    made->bias_ = gemm::padded_bias(bias_, 1, panels_.columns, panels_.padded_columns(), context.weights);
    made->weights_ = convolutions::packed_weights(source_, c.first, 1, made->parts_[0][0].products[0],
                                                  in_.layout == Layout::plain, context.weights);
    return made;
  }

  void make_lines(const Pair& c, const Wanted& w, StageRun* stages) const override {
    const auto& g = c.first;
    const auto& columns = c.columns[w.columns];
    const auto last_panel = w.last_panel == panels() ? panels_.count : w.last_panel;
    gemm::Operands o{};
    o.b = weights_.data<float>().data();
    o.bias = bias_.valid() ? bias_.data<float>().data() : nullptr;
    for (const auto& part : parts_[w.columns]) {
      const auto last = std::min(w.end, part.first + part.count);
      for (auto i = std::max(w.begin, part.first); i < last;) {
        const bool several = part.products.size() > 1 && last - i >= c.together();
        o.a = static_cast<const float*>(w.args.in[0]) + w.image * in_image_ + part.a_first +
              (i - part.first) * part.a_line;
        o.c = w.out + (i - w.begin) * columns.width * c.row - channel(w.first_panel);
        o.first = ((w.image * g.out[1] + i) * g.out[2] + columns.from) * g.outputs;
        gemm::run_panels(part.products[several ? 1 : 0], o, w.first_panel, last_panel, stages);
        i += several ? c.together() : 1;
      }
    }
  }

  depthwise::Ahead ahead(const Pair& c, const Wanted& w) const override {
    depthwise::Ahead ahead;
    if (in_line_ == 0 || w.begin >= w.end) return ahead;
    const auto& g = c.first;
    const auto& columns = c.columns[w.columns];
    const auto reach = (g.kernel[1] - 1) * g.dilation[1] - g.pad[1];  // of a line's last tap
    const auto begin = std::clamp<std::int64_t>((w.begin - 1) * g.stride[1] + reach + 1, 0, g.in[1]),
               end = std::clamp<std::int64_t>((w.end - 1) * g.stride[1] + reach + 1, 0, g.in[1]);
    const auto from = std::clamp<std::int64_t>(columns.from * g.stride[2] - g.pad[2], 0, g.in[2]),
               width = std::min(columns.width * g.stride[2], g.in[2] - from);
    const auto* x = static_cast<const float*>(w.args.in[0]) + w.image * in_image_;
    ahead.from = reinterpret_cast<const char*>(x + begin * in_line_ + from * in_point_);
    ahead.bytes = width * in_point_ * 4;
    ahead.stride = in_line_ * 4;
    ahead.count = end - begin;
    return ahead;
  }

 private:
  const Machine& machine_;
  Rows in_;
  Tensor source_, weights_, bias_;
  Family family_;
  gemm::Panels panels_;
  bool pointwise_ = false, dots_ = false;
  double in_bytes_ = 0;
  std::vector<std::vector<Part>> parts_;     ///< by columns
  std::int64_t in_image_ = 0;                ///< floats of a picture
  std::int64_t in_line_ = 0, in_point_ = 0;  ///< from line to line, to fetch ahead (0: do not)
};

}  // namespace

Parents product_parents(const NodeView& first, std::string& why) {
  const auto groups = first.op<Convolution>()->groups;
  if (groups != 1)
    why = fmt::format("{} groups in the first convolution", groups);
  else if (!first.all(ElementType::f32))
    why = "element types other than f32";
  else if (first.has(3) || first.has(4))
    why = "zero points";
  if (!why.empty()) return {};
  Parents parents{std::make_shared<ProductParent>(first, Layout::channels_last)};
  if (first.dims(0)[1] <= 4)  // else k would be scattered
    parents.push_back(std::make_shared<ProductParent>(first, Layout::plain));
  return parents;
}

}  // namespace lamina::conv_depthwise
