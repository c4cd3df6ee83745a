/// Convolutions and products with weights.
#include "ops/convolution.h"

#include "formats/caffe/call.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/matmul.h"

namespace lamina::caffe {
namespace {

/// A parameter of windows: `name_h` and `name_w`, or `name` once for all axes or once for each.
Ints per_axis(const Call& c, const Params& p, std::string_view name, std::string_view stem,
              std::size_t spatial, std::int64_t fallback) {
  const auto h = std::string(stem) + "_h", w = std::string(stem) + "_w";
  Ints out = p.counts(name);
  if (p.has(h) || p.has(w)) {
    if (spatial != 2) c.fail("{} for {} axes, wanted {}", h, spatial, name);
    const auto first = out.empty() ? fallback : out.front(), last = out.empty() ? fallback : out.back();
    out = {p.count(h, first), p.count(w, last)};
  }
  if (out.empty()) out = {fallback};
  if (out.size() == 1) out.resize(spatial, out[0]);
  if (out.size() != spatial) c.fail("{} has {} values, wanted 1 or {}", name, out.size(), spatial);
  return out;
}

/// What convolutions and their transposes share.
struct Filter {
  std::int64_t outputs = 0, groups = 1, taps = 1;
  bool bias = true;
  Ints kernel, strides, pads, dilations;

  void put(Window& window) const {
    window.strides = strides;
    window.dilations = dilations;
    window.pads_begin = window.pads_end = pads;
  }
};

Filter read_filter(const Call& c) {
  const auto p = c.params("convolution_param");
  const auto rank = c.known_rank(c.in(0));
  if (rank < 3) c.fail("the bottom has shape {}, wanted rank 3 or more", to_string(c.shape(c.in(0))));
  if (p.integer("axis", 1) != 1)
    c.unsupported("a convolution over axes that do not begin behind the channels");
  Filter f;
  const auto spatial = rank - 2;
  f.kernel = per_axis(c, p, "kernel_size", "kernel", spatial, 0);
  f.strides = per_axis(c, p, "stride", "stride", spatial, 1);
  f.pads = per_axis(c, p, "pad", "pad", spatial, 0);
  f.dilations = per_axis(c, p, "dilation", "dilation", spatial, 1);
  f.outputs = p.count("num_output", 0);
  f.groups = p.count("group", 1);
  f.bias = p.flag("bias_term", true);
  if (f.outputs < 1) c.fail("num_output is {}, wanted 1 or more", f.outputs);
  if (f.groups < 1) c.fail("group is {}, wanted 1 or more", f.groups);
  for (const auto size : f.kernel) {
    if (size < 1 || size > (1 << 20)) c.fail("kernel_size is {}, wanted 1 or more", size);
    if (f.taps > (std::int64_t{1} << 30) / size) c.fail("a kernel with too many elements");
    f.taps *= size;
  }
  return f;
}

/// Number of values of blob 0 that belong to one of `parts`.
std::int64_t share_of(const Call& c, std::int64_t parts, std::string_view what) {
  const auto count = static_cast<std::int64_t>(c.blob(0).count);
  if (count == 0 || parts > count || count % parts != 0)
    c.fail("blob 0 has {} values, wanted a multiple of {} ({})", count, parts, what);
  return count / parts;
}

Dims with_kernel(std::int64_t first, std::int64_t second, const Ints& kernel) {
  Dims dims{first, second};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  return dims;
}

Values with_bias(const Call& c, ValueId weights, const Filter& f) {
  Values inputs{c.in(0), weights};
  if (f.bias) inputs.push_back(c.constant(c.tensor(1, {f.outputs})));
  return inputs;
}

/// Weights [O, I / groups, kernel...]. Of depthwise types the groups need not be said.
Values convolution(const Call& c, bool depthwise) {
  auto f = read_filter(c);
  const auto per_output = share_of(c, f.outputs * f.taps, "num_output times the kernel");
  if (depthwise && f.groups == 1) f.groups = c.size(c.in(0), 1) / per_output;
  if (f.groups < 1 || f.outputs % f.groups != 0)
    c.fail("num_output is {}, wanted a multiple of group {}", f.outputs, f.groups);
  Convolution op;
  f.put(op);
  op.groups = f.groups;
  const auto weights = c.constant(c.tensor(0, with_kernel(f.outputs, per_output, f.kernel)));
  return {c.add(std::move(op), with_bias(c, weights, f))};
}

Values convert_convolution(const Call& c) { return convolution(c, false); }
Values convert_depthwise(const Call& c) { return convolution(c, true); }

/// Weights [I, O / groups, kernel...].
Values convert_deconvolution(const Call& c) {
  const auto f = read_filter(c);
  if (f.outputs % f.groups != 0)
    c.fail("num_output is {}, wanted a multiple of group {}", f.outputs, f.groups);
  const auto per_input = f.outputs / f.groups;
  const auto channels = share_of(c, per_input * f.taps, "num_output / group times the kernel");
  ConvolutionBackpropData op;
  f.put(op);
  op.groups = f.groups;
  const auto weights = c.constant(c.tensor(0, with_kernel(channels, per_input, f.kernel)));
  return {c.add(std::move(op), with_bias(c, weights, f))};
}

/// The axes from `axis` on as one, times weights [O, K], or [K, O] where they are transposed.
Values convert_inner_product(const Call& c) {
  const auto p = c.params("inner_product_param");
  const auto outputs = p.count("num_output", 0);
  if (outputs < 1) c.fail("num_output is {}, wanted 1 or more", outputs);
  const auto depth = share_of(c, outputs, "num_output");
  const bool transposed = p.flag("transpose", false);
  const auto axis = c.axis(p.integer("axis", 1), c.in(0));
  auto x = c.in(0);
  if (c.known_rank(x) != axis + 1) {
    Ints pattern(axis, 0);
    pattern.push_back(depth);
    x = c.reshape(x, pattern);
  }
  MatMul op;
  op.transpose_b = !transposed;
  Values inputs{x, c.constant(c.tensor(0, transposed ? Dims{depth, outputs} : Dims{outputs, depth}))};
  if (p.flag("bias_term", true)) inputs.push_back(c.constant(c.tensor(1, {outputs})));
  return {c.add(op, inputs)};
}

/// Rows of a table by number.
Values convert_embed(const Call& c) {
  const auto p = c.params("embed_param");
  const auto outputs = p.count("num_output", 0);
  if (outputs < 1) c.fail("num_output is {}, wanted 1 or more", outputs);
  const auto table = c.constant(c.tensor(0, {share_of(c, outputs, "num_output"), outputs}));
  const auto rows = c.add(Convert{ElementType::i32}, {c.in(0)});
  const auto y = c.add(Gather{}, {table, rows, c.int_constant(0)});
  if (!p.flag("bias_term", true)) return {y};
  return {c.add(Add{}, {y, c.constant(c.tensor(1, {outputs}))})};
}

}  // namespace

void register_convolution(ConverterTable& t) {
  t.add("Convolution", convert_convolution);
  t.add("ConvolutionDepthwise", convert_depthwise);
  t.add("DepthwiseConvolution", convert_depthwise);
  t.add("Deconvolution", convert_deconvolution);
  t.add("Embed", convert_embed);
  t.add("InnerProduct", convert_inner_product);
}

}  // namespace lamina::caffe
