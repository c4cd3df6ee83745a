#include "ops/convolution.h"

#include "graph/op_model.h"
#include "ops/operators.h"
#include "ops/require.h"

namespace lamina {
namespace {

constexpr std::int64_t kLargestEntry = std::int64_t{1}
                                       << 31;  // of a stride, pad, dilation or kernel: products fit 64 bits

/// The list with every axis filled in, checked.
Ints filled(const Ints& list, std::size_t axes, std::int64_t fallback, std::int64_t least,
            std::string_view name) {
  if (list.empty()) return Ints(axes, fallback);
  if (list.size() != axes)
    fail(ErrorCode::bad_file, "{} has {} entries, wanted {} (the spatial axes)", name, list.size(), axes);
  for (auto v : list) {
    if (v < least) fail(ErrorCode::bad_file, "{} has the entry {}, wanted {} or more", name, v, least);
    if (v > kLargestEntry)
      fail(ErrorCode::bad_file, "{} has the entry {}, wanted at most {}", name, v, kLargestEntry);
  }
  return list;
}

ResolvedWindow filled(const Window& w, std::size_t axes, std::span<const std::int64_t> kernel) {
  if (kernel.size() != axes)
    fail(ErrorCode::bad_file, "kernel has {} entries, wanted {} (the spatial axes)", kernel.size(), axes);
  for (auto k : kernel)
    if (k < 1 || k > kLargestEntry)
      fail(ErrorCode::bad_file, "kernel has the size {}, wanted 1 to {}", k, kLargestEntry);
  return {filled(w.strides, axes, 1, 1, "strides"), filled(w.dilations, axes, 1, 1, "dilations"),
          filled(w.pads_begin, axes, 0, 0, "pads_begin"), filled(w.pads_end, axes, 0, 0, "pads_end")};
}

/// Weights' spatial sizes when all are known.
std::optional<Ints> kernel_of(const Shape& weights) {
  if (!weights.ranked()) return std::nullopt;
  Ints kernel;
  for (std::size_t i = 2; i < weights.rank(); ++i) {
    if (!weights[i].known()) return std::nullopt;
    kernel.push_back(weights[i].size());
  }
  return kernel;
}

/// Element types of the operands and of the result.
ElementType result_element(const InferContext& c, ElementType sums) {
  require_number(c, 0, "input");
  require_number(c, 1, "weights");
  const auto x = c.element(0);
  if (x == ElementType::undefined) return x;
  if (is_float(x)) {
    require_same_element(c, 0, 1, "weights");
    return sums_element(c, x, sums);
  }
  c.require(sums == ElementType::undefined, "sums of {}, wanted those of floats", name_of(x));
  require_integer(c, 1, "weights");
  return ElementType::i32;
}

/// Common rank of input and weights (3 to 5), when one of them is known.
std::optional<std::size_t> common_rank(const InferContext& c) {
  require_rank(c, 0, 3, 5, "input");
  require_rank(c, 1, 3, 5, "weights");
  const auto &x = c.shape(0), &w = c.shape(1);
  c.require(!x.ranked() || !w.ranked() || x.rank() == w.rank(),
            "input has shape {} and weights {}, wanted equal ranks", to_string(x), to_string(w));
  if (x.ranked()) return x.rank();
  if (w.ranked()) return w.rank();
  return std::nullopt;
}

std::span<const Dim> spatial_of(const Shape& shape) { return std::span(shape.dims()).subspan(2); }

void check_groups(const InferContext& c, std::int64_t groups, const Dim& inputs_per_group,
                  const Dim& outputs) {
  c.require(groups >= 1, "groups is {}, wanted 1 or more", groups);
  const auto& x = c.shape(0);
  if (x.ranked() && inputs_per_group.known() && x[1].known())
    c.require(
        inputs_per_group.size() <= INT64_MAX / groups && x[1].size() == inputs_per_group.size() * groups,
        "input has {} channels, weights take {} in each of {} groups", x[1].size(), inputs_per_group.size(),
        groups);
  if (outputs.known())
    c.require(outputs.size() % groups == 0, "{} output channels in {} groups, wanted a multiple",
              outputs.size(), groups);
}

void check_bias(const InferContext& c, const Dim& channels) {
  if (!c.has(2)) return;
  require_number(c, 2, "bias");
  require_shape(c, 2, Shape{channels}, "bias");
}

/// Inputs `first` and the one behind it.
void check_zero_points(const InferContext& c, std::size_t first, const Dim& channels) {
  const auto of_weights = first + 1;
  if (c.has(first)) {
    require_integer(c, first, "zero point of the input");
    require_dim(c, c.shape(first).count(), 1, "number of zero points of the input");
  }
  if (c.has(of_weights)) {
    require_integer(c, of_weights, "zero point of the weights");
    if (!one_element(c.shape(of_weights)))
      require_shape(c, of_weights, Shape{channels}, "zero point of the weights");
  }
  if (c.has(first) || c.has(of_weights))
    c.require(c.element(0) == ElementType::undefined || is_integer(c.element(0)),
              "input is {} and has a zero point, wanted integers", name_of(c.element(0)));
  if (c.has(first)) require_same_element(c, 0, first, "zero point of the input");
  if (c.has(of_weights)) require_same_element(c, 1, of_weights, "zero point of the weights");
}

/// Spatial output dims of a forward convolution.
void append_windows(const Window& window, const Shape& x, const Ints& kernel, std::vector<Dim>& out) {
  const auto spatial = spatial_of(x);
  const auto w = resolve(window, spatial, kernel);
  const bool same = window.auto_pad == AutoPad::same_upper || window.auto_pad == AutoPad::same_lower;
  for (std::size_t i = 0; i < spatial.size(); ++i)
    out.push_back(same ? same_count(spatial[i], w.strides[i])
                       : window_count(spatial[i], kernel[i], w.strides[i], w.dilations[i], w.pads_begin[i],
                                      w.pads_end[i], WindowRounding::floor));
}

Shape forward_shape(const InferContext& c, const Window& window, std::size_t rank) {
  const auto &x = c.shape(0), &w = c.shape(1);
  std::vector<Dim> out{x.ranked() ? x[0] : Dim(), w.ranked() ? w[0] : Dim()};
  const auto kernel = kernel_of(w);
  if (kernel && x.ranked())
    append_windows(window, x, *kernel, out);
  else
    out.resize(rank);
  return Shape(std::move(out));
}

}  // namespace

ResolvedWindow resolve(const Window& window, std::span<const Dim> spatial,
                       std::span<const std::int64_t> kernel) {
  auto w = filled(window, spatial.size(), kernel);
  if (window.auto_pad == AutoPad::explicit_) return w;
  for (std::size_t i = 0; i < spatial.size(); ++i) {
    w.pads_begin[i] = w.pads_end[i] = 0;
    if (window.auto_pad == AutoPad::valid || !spatial[i].known()) continue;
    const auto in = spatial[i].size();
    const auto covered =
        (same_count(in, w.strides[i]).size() - 1) * w.strides[i] + (kernel[i] - 1) * w.dilations[i] + 1;
    const auto total = std::max<std::int64_t>(covered - in, 0);
    const auto smaller = total / 2;
    w.pads_begin[i] = window.auto_pad == AutoPad::same_upper ? smaller : total - smaller;
    w.pads_end[i] = total - w.pads_begin[i];
  }
  return w;
}

ResolvedWindow resolve_transposed(const ConvolutionBackpropData& op, std::span<const Dim> spatial,
                                  std::span<const std::int64_t> kernel, std::span<const Dim> output) {
  auto w = filled(op, spatial.size(), kernel);
  const auto extra = filled(op.output_padding, spatial.size(), 0, 0, "output_padding");
  if (op.auto_pad == AutoPad::explicit_) return w;
  for (std::size_t i = 0; i < spatial.size(); ++i) {
    w.pads_begin[i] = w.pads_end[i] = 0;
    if (op.auto_pad == AutoPad::valid || output.empty() || !spatial[i].known() || !output[i].known())
      continue;
    const Dim full = Dim(w.strides[i]) * Dim(std::max<std::int64_t>(spatial[i].size() - 1, 0)) +
                     Dim((kernel[i] - 1) * w.dilations[i] + 1) + Dim(extra[i]);
    const auto total = std::max<std::int64_t>(full.size() - output[i].size(), 0);
    const auto smaller = total / 2;
    w.pads_begin[i] = op.auto_pad == AutoPad::same_upper ? total - smaller : smaller;
    w.pads_end[i] = total - w.pads_begin[i];
  }
  return w;
}

void Convolution::infer(InferContext& c) const {
  const auto element = result_element(c, sums);
  const auto rank = common_rank(c);
  const auto& w = c.shape(1);
  const Dim outputs = w.ranked() ? w[0] : Dim();
  check_groups(c, groups, w.ranked() ? w[1] : Dim(), outputs);
  check_bias(c, outputs);
  check_zero_points(c, 3, outputs);
  c.set(0, element, rank ? forward_shape(c, *this, *rank) : Shape());
}

void ConvolutionBackpropData::infer(InferContext& c) const {
  const auto element = result_element(c, sums);
  const auto rank = common_rank(c);
  const auto &x = c.shape(0), &w = c.shape(1);
  for (std::size_t i = 0; i < 2; ++i)
    c.require(!is_integer(c.element(i)) || bits_of(c.element(i)) <= 16, "input {} is {}, wanted 8 or 16 bits",
              i, name_of(c.element(i)));
  c.require(groups >= 1, "groups is {}, wanted 1 or more", groups);
  if (w.ranked() && x.ranked()) require_dim(c, x[1], w[0], "number of input channels");
  Dim outputs;
  if (w.ranked()) {
    if (w[0].known())
      c.require(w[0].size() % groups == 0, "{} input channels in {} groups, wanted a multiple", w[0].size(),
                groups);
    outputs = w[1] * Dim(groups);
  }
  check_bias(c, outputs);
  check_zero_points(c, 4, outputs);
  if (!rank) return c.set(0, element, Shape());
  std::vector<Dim> out{x.ranked() ? x[0] : Dim(), outputs};
  std::vector<Dim> wanted;
  if (c.has(3)) {
    require_integer(c, 3, "output shape");
    require_rank(c, 3, 1, 1, "output shape");
    wanted = c.dims(3).value_or(std::vector<Dim>(*rank - 2));
    c.require(wanted.size() == *rank - 2, "output shape has {} entries, wanted {}", wanted.size(), *rank - 2);
    for (const auto& d : wanted)
      c.require(!d.known() || d.size() >= 0, "output shape has the entry {}, wanted 0 or more", d.low());
  }
  const auto kernel = kernel_of(w);
  if (kernel && x.ranked()) {
    const auto win = resolve_transposed(*this, spatial_of(x), *kernel, wanted);
    for (std::size_t i = 0; wanted.empty() && i < kernel->size(); ++i) {
      const auto constant = ((*kernel)[i] - 1) * win.dilations[i] + 1 +
                            (output_padding.empty() ? 0 : output_padding[i]) - win.strides[i] -
                            win.pads_begin[i] - win.pads_end[i];
      const Dim scaled = x[i + 2] * Dim(win.strides[i]);
      const Dim size = constant < 0 ? scaled - Dim(-constant) : scaled + Dim(constant);
      c.require(size.high() >= 1, "output of size {} along spatial axis {}, wanted 1 or more", size.high(),
                i);
      out.push_back(size);
    }
  }
  if (!wanted.empty()) out.insert(out.end(), wanted.begin(), wanted.end());
  out.resize(*rank);
  c.set(0, element, Shape(std::move(out)));
}

void BinaryConvolution::infer(InferContext& c) const {
  if (c.element(0) != ElementType::boolean) require_number(c, 0, "input");  // true is +1
  require_number(c, 1, "weights");
  const auto rank = common_rank(c);
  const auto& w = c.shape(1);
  check_groups(c, groups, w.ranked() ? w[1] : Dim(), w.ranked() ? w[0] : Dim());
  const auto e = c.element(0);
  c.set(0, e == ElementType::undefined || is_float(e) ? e : ElementType::f32,
        rank ? forward_shape(c, *this, *rank) : Shape());
}

void register_convolution(Registry& r) {
  r.add<Convolution>();
  r.add<ConvolutionBackpropData>();
  r.add<BinaryConvolution>();
}

}  // namespace lamina
