/// MVN, NormalizeL2, layer, RMS and group normalisation and GRN, f32.
#include "kernels/native/normalize/run.h"

#include <algorithm>
#include <cstring>

#include "base/cpu.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "ops/normalization.h"

namespace lamina {
namespace {

using Divisor = Normalization::Divisor;
using Measure = Normalization::Measure;

/// The tensor as [outer][rows][columns][fold], where rows and fold are normalised together.
Verdict set_sizes(Normalization& c, const Dims& x, const std::vector<bool>& together, Layout layout) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (layout == Layout::plain || i != 1) order.push_back(i);
  if (layout == Layout::channels_last) order.push_back(1);
  std::int64_t sizes[4] = {1, 1, 1, 1};
  std::size_t at = 0;  // even: not together
  for (const auto axis : order) {
    if (x[axis] == 1) continue;
    if (together[axis] != (at % 2 == 1)) ++at;
    if (at > 3) return Verdict::no("{}: the axes alternate too often", name_of(layout));
    sizes[at] *= x[axis];
  }
  c.outer = sizes[0];
  c.rows = sizes[1];
  c.columns = sizes[2] * sizes[3];
  c.fold = sizes[3];
  return Verdict::yes();
}

std::vector<bool> flags_of(const Ints& axes, std::size_t rank) {
  std::vector<bool> flags(rank);
  for (auto a : axes) flags[normalize_axis(a, rank, "axis")] = true;
  return flags;
}

std::vector<bool> last_axes(std::int64_t axis, std::size_t rank) {
  std::vector<bool> flags(rank);
  for (auto i = normalize_axis(axis, rank, "axis"); i < rank; ++i) flags[i] = true;
  return flags;
}

/// Scale or bias of the last axes as one number per element of a line: the input itself, or a constant that
/// is expanded when the kernel is made.
Verdict line_numbers(const NodeView& v, std::size_t input, const Dims& line, Tensor& expanded, bool& reads) {
  Dims own = v.dims(input);
  while (own.size() > line.size() && own.front() == 1) own.erase(own.begin());
  if (own.size() > line.size()) return Verdict::no("input {} differs between lines", input);
  if (own == line) {
    reads = true;
    return Verdict::yes();
  }
  if (!v.constant(input)) return Verdict::no("input {} is not constant and broadcasts", input);
  own.insert(own.begin(), line.size() - own.size(), 1);
  expanded = v.constant(input)->reshaped(own);
  return Verdict::yes();
}

/// Numbers that broadcast, as one for each element of a line.
Tensor expanded_to(const Dims& line, const Tensor& source, WeightStore& store) {
  if (!source.valid()) return {};
  const PackedSize size(ElementType::f32, static_cast<std::int64_t>(element_count(line)));
  return store.moved(source, fmt::format("native_normalize {}", to_string(line)), size,
                     [&](const Tensor& numbers) {
                       const auto given = to_floats(numbers);
                       Tensor expanded(ElementType::f32, line);
                       const auto from = strides_of(numbers.shape(), Layout::plain);
                       auto out = expanded.data<float>();
                       for (std::size_t i = 0; i < out.size(); ++i) {
                         auto rest = static_cast<std::int64_t>(i), at = std::int64_t{0};
                         for (std::size_t a = line.size(); a-- > 0; rest /= line[a])
                           if (numbers.shape()[a] != 1) at += rest % line[a] * from[a];
                         out[i] = given[static_cast<std::size_t>(at)];
                       }
                       return expanded;
                     });
}

Verdict with_last_axes(const NodeView& v, std::int64_t axis, Layout layout, Normalization& c) {
  if (layout != Layout::plain) return Verdict::no("channels_last: scale and bias lie along the last axes");
  const auto rank = v.dims(0).size();
  if (const auto ok = set_sizes(c, v.dims(0), last_axes(axis, rank), layout); !ok) return ok;
  const auto first = normalize_axis(axis, rank, "axis");
  const auto x = v.dims(0);
  c.line.assign(x.begin() + static_cast<std::ptrdiff_t>(first), x.end());
  if (v.has(1)) {
    c.affine = Normalization::Affine::element;
    if (const auto ok = line_numbers(v, 1, c.line, c.scale, c.reads_scale); !ok) return ok;
  }
  if (v.has(2))
    if (const auto ok = line_numbers(v, 2, c.line, c.bias, c.reads_bias); !ok) return ok;
  return Verdict::yes();
}

Verdict group(const NodeView& v, const GroupNormalization& op, Layout layout, Normalization& c) {
  const auto x = v.dims(0);
  std::int64_t pixels = 1;
  for (std::size_t i = 2; i < x.size(); ++i) pixels *= x[i];
  c.eps = op.epsilon;
  c.affine = Normalization::Affine::channel;
  c.channels = x[1];
  c.channel = pixels;
  c.reads_scale = c.reads_bias = true;
  const auto together = x[1] / op.num_groups;
  if (layout == Layout::plain) {
    c.outer = x[0] * op.num_groups;
    c.rows = together * pixels;
  } else {
    c.outer = x[0];
    c.rows = pixels;
    c.columns = x[1];
    c.fold = together;
  }
  return Verdict::yes();
}

/// The node in the words of Normalization.
Verdict describe(const NodeView& v, Layout layout, Normalization& c) {
  const auto x = v.dims(0);
  const auto axes = [&]() -> std::optional<std::vector<bool>> {
    if (!v.constant(1)) return std::nullopt;
    return flags_of(to_ints(*v.constant(1)), x.size());
  };
  if (const auto* op = v.op<MVN>()) {
    c.eps = op->eps;
    if (!op->normalize_variance)
      c.measure = Measure::mean, c.divisor = Divisor::one;
    else if (op->eps_mode == MvnEpsMode::outside_sqrt)
      c.divisor = Divisor::sqrt_of_v_plus_eps_outside;
    const auto flags = axes();
    return flags ? set_sizes(c, x, *flags, layout) : Verdict::no("the axes are not constant");
  }
  if (const auto* op = v.op<NormalizeL2>()) {
    c.eps = op->eps;
    c.measure = Measure::squares;
    if (op->eps_mode == L2EpsMode::max) c.divisor = Divisor::sqrt_of_most;
    const auto flags = axes();
    return flags ? set_sizes(c, x, *flags, layout) : Verdict::no("the axes are not constant");
  }
  if (const auto* op = v.op<GRN>()) {
    c.eps = op->bias;
    c.measure = Measure::squares;
    return set_sizes(c, x, flags_of({1}, x.size()), layout);
  }
  if (const auto* op = v.op<LayerNormalization>()) {
    c.eps = op->epsilon;
    return with_last_axes(v, op->axis, layout, c);
  }
  if (const auto* op = v.op<RMSNormalization>()) {
    c.eps = op->epsilon;
    c.measure = Measure::squares;
    c.mean_of_squares = true;
    return with_last_axes(v, op->axis, layout, c);
  }
  return group(v, *v.op<GroupNormalization>(), layout, c);
}

std::string_view short_name(const Op& op) {
  if (op.is<MVN>()) return "mvn";
  if (op.is<NormalizeL2>()) return "normalize_l2";
  if (op.is<GRN>()) return "grn";
  if (op.is<LayerNormalization>()) return "layer_norm";
  return op.is<RMSNormalization>() ? "rms_norm" : "group_norm";
}

void offer_in(const NodeView& v, Layout layout, Answers& answers) {
  auto code = std::make_shared<Normalization>();
  if (const auto ok = describe(v, layout, *code); !ok) return answers.refuse("native", "{}", ok.reason());
  Offer o(v, fmt::format("native_{}_{}_f32", short_name(v.node().op), name_of(v.machine().isa())), layout);
  o.in_place = {{0, 0}};
  const bool axes_in_1 = v.node().op.is<MVN>() || v.node().op.is<NormalizeL2>();
  if (axes_in_1) o.consumed.push_back(1);
  if (code->scale.valid()) o.consumed.push_back(1);
  if (code->bias.valid()) o.consumed.push_back(2);
  const auto count = static_cast<double>(element_count(v.dims(0)));
  o.cost = cost_of(v.machine(), Family::vector_light, 3 * count, 12 * count) +
           calls_of(v.machine(), Family::normalize_line,
                    static_cast<double>(code->outer * code->columns / code->fold));
  o.scratch = plan_normalize(*code, o.cost.us());
  std::string why;
  if (axes_in_1) {  // the operators that may have an epilogue
    code->stages = StageProgram::of_epilogue(v, layout, why);
    if (code->stages)
      code->stages->add_to(o, v.machine());
    else
      o.stages = 0;
  }
  o.make = [code](MakeContext& context) {
    const auto made = std::make_shared<Normalization>(*code);
    made->scale = expanded_to(made->line, made->scale, context.weights);
    made->bias = expanded_to(made->line, made->bias, context.weights);
    if (made->stages) made->stages = made->stages->made(context);
    return executable([made](const RunArgs& args) { run_normalize(*made, args); });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace

bool is_normalization(const Op& op) {
  return op.is<MVN>() || op.is<NormalizeL2>() || op.is<GRN>() || op.is<LayerNormalization>() ||
         op.is<RMSNormalization>() || op.is<GroupNormalization>();
}

void offer_normalize(const NodeView& v, Answers& answers) {
  const auto base = v.node().op.is<MVN>() || v.node().op.is<NormalizeL2>() ? std::size_t{1} : v.inputs();
  for (std::size_t i = 0; i < base; ++i)
    if (v.has(i) && v.element(i) != ElementType::f32)
      return answers.refuse("native", "input {} is {}, wanted f32", i, name_of(v.element(i)));
  if (v.out_element() != ElementType::f32) return answers.refuse("native", "a result of other than f32");
  if (element_count(v.dims(0)) == 0) return answers.refuse("native", "empty tensors");
  offer_in(v, Layout::plain, answers);
  if (v.dims(0).size() >= 3) offer_in(v, Layout::channels_last, answers);
}

}  // namespace lamina
