/// Convolutions and matrix products of quantised operands multiply the integers themselves.
#include <algorithm>
#include <cmath>

#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/quantization.h"
#include "ops/shaping.h"
#include "rules/int8.h"
#include "rules/rules.h"
#include "rules/stored_weights.h"
#include "rules/weights.h"

namespace lamina {
namespace {

/// What a product multiplies: (integers - zero_point) * scale + offset.
struct Source {
  ValueId integers;
  std::int64_t zero_point = 0;
  std::vector<double> scale;  ///< one, or where each channel has a group of its own one for each
  double offset = 0;
  int8::Levels levels;  ///< the nodes that made floats of them
};

/// Integers with one scale and zero point, or one for each output channel.
struct Factors {
  ValueId value;   ///< where they are no constant
  Tensor numbers;  ///< else: i8 where all differences from their zero points fit
  Tensor zero_points;
  std::vector<double> scale{1};
  std::vector<NodeId> nodes;  ///< that made floats of them
};

/// The axis of the weights along which outputs lie; their rank where they are one column.
std::size_t output_axis(const Graph& g, const Node& product) {
  const auto rank = g.type(product.inputs[1]).shape.rank();
  if (const auto* op = product.op.as<MatMul>()) return rank < 2 ? rank : rank - (op->transpose_b ? 2 : 1);
  return product.op.is<Convolution>() ? 0 : 1;
}

/// The elements of an operand that broadcasts to the weights along their outputs alone.
Found<std::vector<double>> by_output(const Match& m, const Node& product, const Tensor& operand) {
  if (operand.size() == 1) return to_doubles(operand);
  if (operand.size() == 0) return Verdict::no("its weights are empty");
  const auto& w = m.graph().type(product.inputs[1]).shape;
  const auto axis = output_axis(m.graph(), product);
  const auto shift = w.rank() - std::min(w.rank(), operand.rank());
  for (std::size_t i = 0; i < operand.rank(); ++i)
    if (operand.shape()[i] != 1 && i + shift != axis)
      return Verdict::no("its weights have scales along axis {}, integers are summed there", i + shift);
  const auto* back = product.op.as<ConvolutionBackpropData>();
  if (back && back->groups > 1) return Verdict::no("its weights have scales by group");
  return to_doubles(operand);
}

/// A constant scale or zero point of a Dequantize, laid out to meet the weights.
Found<Tensor> laid_out(const Match& m, const Node& dequantize, std::size_t input) {
  const auto* t = m.graph().constant(dequantize.inputs[input]);
  const auto& op = *dequantize.op.as<Dequantize>();
  if (!t) return Verdict::no("the scales of its weights are computed");
  if (t->size() == 1) return *t;
  if (op.block_size != 0) return Verdict::no("its weights have scales by block, integers are summed across");
  const auto rank = m.graph().type(dequantize.inputs[0]).shape.rank();
  return t->reshaped(along_axis(rank, normalize_axis(op.axis, rank, "axis"), t->size()));
}

std::vector<double> times(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = a[i % a.size()] * b[i % b.size()];
  return out;
}

/// One step from the integers to the weights: adds its scale; zero points in `zero`.
Verdict follow(const Match& m, const Node& product, const Node& step, Factors& f, std::vector<double>& zero) {
  const Graph& g = m.graph();
  const auto scaled = [&](const Tensor& t) -> Verdict {
    const auto s = by_output(m, product, t);
    if (s) f.scale = times(f.scale, *s);
    return s.verdict();
  };
  const auto centred = [&](const Tensor& t) -> Verdict {
    const auto z = by_output(m, product, t);
    if (z) zero = *z;
    return z.verdict();
  };
  if (step.op.is<Convert>()) return Verdict::yes();
  if (step.op.is<Dequantize>()) {
    const auto s = laid_out(m, step, 1);
    if (!s) return s.verdict();
    if (auto v = scaled(*s); !v || !has_input(step, 2)) return v;
    const auto z = laid_out(m, step, 2);
    return z ? centred(*z) : z.verdict();
  }
  const auto* operand = step.inputs.size() == 2 ? g.constant(step.inputs[1]) : nullptr;
  if (operand && step.op.is<Multiply>()) return scaled(*operand);
  const bool first = f.scale == std::vector<double>{1} && zero == std::vector<double>{0};
  if (operand && step.op.is<Subtract>() && first) return centred(*operand);
  return Verdict::no("its weights are made of integers by {}", step.op.name());
}

/// The integers without their zero points, where these are whole and what is left has 8 bits.
Found<Tensor> centred(const Tensor& numbers, const std::vector<double>& zero, std::size_t axis) {
  const bool is_zero = std::all_of(zero.begin(), zero.end(), [](double z) { return z == 0; });
  if (is_zero && numbers.element_type() == ElementType::i8) return numbers;
  const auto [least, most] =
      numbers.element_type() == ElementType::u8 ? std::pair{0, 255} : std::pair{-128, 127};
  for (const auto z : zero)
    if (z != std::nearbyint(z) || z < least || z > most)
      return Verdict::no("a zero point of its weights is {}, wanted a whole number from {} to {}", z, least,
                         most);
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < numbers.rank(); ++i)
    inner *= static_cast<std::size_t>(numbers.shape()[i]);
  const Tensor bytes =
      numbers.element_type() == ElementType::u8 ? numbers : convert(numbers, ElementType::i8);
  Tensor out(ElementType::i8, numbers.shape());
  const bool is_unsigned = bytes.element_type() == ElementType::u8;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto raw = std::to_integer<std::uint8_t>(bytes.raw()[i]);
    const int number = is_unsigned ? raw : static_cast<std::int8_t>(raw);
    const int left = number - static_cast<int>(zero[zero.size() == 1 ? 0 : i / inner % zero.size()]);
    if (left < -128 || left > 127) return std::nullopt;
    out.raw()[i] = static_cast<std::byte>(left);
  }
  return out;
}

Found<Factors> constant_factors(const Match& m, const Node& product, const StoredWeights& stored) {
  const Graph& g = m.graph();
  Factors out;
  std::vector<double> zero{0};
  for (const auto id : stored.nodes) {
    if (m.is_exempt(id)) return Verdict::no("'{}' is exempt", g.label(id));
    if (auto v = follow(m, product, g.node(id), out, zero); !v) return v;
  }
  out.nodes = stored.nodes;
  const Tensor& numbers = *g.constant(stored.numbers);
  if (!(Shape::of(numbers.shape()) == g.type(product.inputs[1]).shape))
    return Verdict::no("its weights are larger than the integers that they are made of");
  auto small = centred(numbers, zero, output_axis(g, product));
  if (small) {
    out.numbers = *small;
  } else if (!small.verdict().reason().empty()) {
    return small.verdict();
  } else {
    out.numbers = bits_of(numbers.element_type()) == 8 ? numbers : convert(numbers, ElementType::i8);
    const Dims dims = zero.size() == 1 ? Dims{} : Dims{static_cast<std::int64_t>(zero.size())};
    out.zero_points = from_doubles(out.numbers.element_type(), dims, zero);
  }
  return out;
}

/// Given at run time: one scale, or one for each output channel.
Found<Factors> computed_factors(const Match& m, const Node& product) {
  const Graph& g = m.graph();
  const auto maker = g.producer(product.inputs[1]);
  if (const auto levels = int8::shifted_levels_of(m, product.inputs[1]); levels && levels->offset != 0)
    return Verdict::no("0 is no level of {}, which is computed", m.label(product.inputs[1]));
  if (!maker.valid() || !g.node(maker).op.is<Dequantize>()) return std::nullopt;
  const Node& n = g.node(maker);
  const auto type = g.type(n.inputs[0]).element;
  if (bits_of(type) != 8 || !g.type(n.inputs[0]).shape.ranked()) return std::nullopt;
  if (m.is_exempt(maker)) return Verdict::no("'{}' is exempt", g.label(maker));
  Factors out;
  std::vector<double> zero{0};
  if (auto v = follow(m, product, n, out, zero); !v) return v;
  out.value = n.inputs[0];
  if (std::any_of(zero.begin(), zero.end(), [](double z) { return z != 0; }))
    out.zero_points =
        from_doubles(type, zero.size() == 1 ? Dims{} : Dims{static_cast<std::int64_t>(zero.size())}, zero);
  return out;
}

struct Integers {
  Source source;
  Factors factors;
};

/// Each input channel has a group of its own.
bool is_depthwise(const Graph& g, const Node& n) {
  const auto* op = n.op.as<Convolution>();
  const auto& w = g.type(n.inputs[1]).shape;
  return op && op->groups > 1 && w.ranked() && w[1].is(1);
}

/// A border of zeros, or one that depends on sizes.
bool pads(const Node& n) {
  const auto zeros = [](const Window& w) {
    return (w.auto_pad == AutoPad::explicit_ || w.auto_pad == AutoPad::valid) && all_are(w.pads_begin, 0) &&
           all_are(w.pads_end, 0);
  };
  if (const auto* op = n.op.as<Convolution>()) return !zeros(*op);
  return n.op.is<ConvolutionBackpropData>();
}

/// The scales of a Dequantize by channel, of one zero point.
Found<Source> source_by_channel(const Graph& g, const Node& product, const Node& dequantize) {
  const auto& op = *dequantize.op.as<Dequantize>();
  const auto& shape = g.type(product.inputs[0]).shape;
  const auto* scale = g.constant(dequantize.inputs[1]);
  const auto zero = has_input(dequantize, 2) ? uniform_value(g, dequantize.inputs[2]) : 0.0;
  if (!scale || !zero || op.block_size != 0 || !shape.ranked() || scale->size() < 2 ||
      normalize_axis(op.axis, shape.rank(), "axis") != 1 || !is_depthwise(g, product))
    return std::nullopt;
  return Source{dequantize.inputs[0], static_cast<std::int64_t>(*zero), to_doubles(*scale), 0, {}};
}

/// All sizes but that of the batch.
bool known_behind_batch(const Shape& shape) {
  return shape.ranked() &&
         std::all_of(shape.dims().begin() + 1, shape.dims().end(), [](const Dim& d) { return d.known(); });
}

Found<Source> source_of(const Match& m, const Node& product) {
  const Graph& g = m.graph();
  const auto v = product.inputs[0];
  auto levels = int8::shifted_levels_of(m, v);
  Source out;
  if (levels) {
    out = Source{levels->integers, levels->zero_point, {levels->scale}, levels->offset, *levels};
  } else {
    if (levels.verdict().reason().empty()) return std::nullopt;
    const auto maker = g.producer(v);
    if (!g.node(maker).op.is<Dequantize>()) return levels.verdict();
    auto found = source_by_channel(g, product, g.node(maker));
    if (!found) return levels.verdict();
    if (m.is_exempt(maker)) return Verdict::no("'{}' is exempt", g.label(maker));
    out = std::move(found).take();
    out.levels.step = maker;
  }
  if (out.offset != 0 && pads(product)) {
    if (product.op.is<ConvolutionBackpropData>())
      return Verdict::no("0 is no level of {}", m.label(product.inputs[0]));
    const auto &x = g.type(product.inputs[0]).shape, &y = g.type(product.outputs[0]).shape;
    if (!known_behind_batch(x) || !known_behind_batch(y))
      return Verdict::no("0 is no level of {}, and the size of the picture that it pads is not known",
                         m.label(product.inputs[0]));
  }
  return out;
}

/// The least and the largest of numbers that are not 0.
std::pair<double, double> sizes_of(const std::vector<double>& numbers) {
  std::pair<double, double> out{1, 1};
  bool any = false;
  for (const auto n : numbers) {
    const auto size = std::fabs(n);
    if (size == 0) continue;
    out = any ? std::pair{std::min(out.first, size), std::max(out.second, size)} : std::pair{size, size};
    if (!std::isfinite(size)) return {size, size};
    any = true;
  }
  return out;
}

/// The scale of the sums is that of the products, whatever f32 makes of its factors.
Verdict scales_fit(const Integers& found) {
  const auto x = sizes_of(found.source.scale), w = sizes_of(found.factors.scale);
  const auto least = static_cast<float>(x.first * w.first), most = static_cast<float>(x.second * w.second);
  if (int8::numbers_are_finite(x.second) && int8::numbers_are_finite(w.second) && std::isnormal(least) &&
      std::isnormal(most))
    return Verdict::yes();
  return Verdict::no("its scales from {} and {} on have products that are too small or too large", x.first,
                     w.first);
}

/// What is added to all elements of the source adds one number to each output channel.
bool one_sum_by_output(const Graph& g, const Node& n) {
  if (n.op.is<Convolution>()) return true;
  const auto& w = g.type(n.inputs[1]).shape;
  return n.op.is<MatMul>() && w.ranked() && w.rank() < 3;
}

/// So many products of integers of 8 and 9 bits stay below 2^31.
constexpr double kMostProducts = 33025;

Verdict sums_fit(const Graph& g, const Node& product) {
  const auto& w = g.type(product.inputs[1]).shape;
  if (!w.ranked()) return Verdict::no("the rank of its weights is not known");
  const auto axis = output_axis(g, product);
  double count = 1;
  if (const auto* op = product.op.as<MatMul>()) {
    const Dim depth = w.rank() < 2 ? w[0] : w[w.rank() - (op->transpose_b ? 1 : 2)];
    if (!depth.known()) return Verdict::no("the number of products in a sum is not known");
    count = static_cast<double>(depth.size());
  } else {
    for (std::size_t i = 0; i < w.rank(); ++i) {
      if (!w[i].known()) return Verdict::no("the number of products in a sum is not known");
      if (i != axis) count *= static_cast<double>(w[i].size());
    }
  }
  if (count > kMostProducts)
    return Verdict::no("sums of {:.0f} products of integers may need more than 32 bits", count);
  return Verdict::yes();
}

Found<Integers> operands(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  if (!m.integers || g.type(n.outputs[0]).element != ElementType::f32) return std::nullopt;
  const auto stored = stored_weights(g, n.inputs[1]);
  auto factors = stored ? constant_factors(m, n, *stored) : computed_factors(m, n);
  auto source = source_of(m, n);
  const bool no_source = !source && source.verdict().reason().empty();
  const bool no_factors = !factors && factors.verdict().reason().empty();
  if (no_source && no_factors) return std::nullopt;
  if (!source) {
    if (!no_source) return source.verdict();
    return Verdict::no("its weights are integers, its input {} is not quantised to 8 bits",
                       m.label(n.inputs[0]));
  }
  if (!factors) {
    if (!no_factors) return factors.verdict();
    return Verdict::no("its input is quantised, its weights {} are floats", m.label(n.inputs[1]));
  }
  if (n.op.is<ConvolutionBackpropData>() && has_input(n, 3) && !g.constant(n.inputs[3]))
    return Verdict::no("its output's sizes are computed");
  if (n.op.is<ConvolutionBackpropData>() && (source->zero_point != 0 || factors->zero_points.valid()))
    return Verdict::no("integers of a transposed convolution have no zero points");
  if (epilogue(n)) return Verdict::no("it has an epilogue already");
  if (auto v = sums_fit(g, n); !v) return v;
  if (!g.type(n.outputs[0]).shape.ranked()) return Verdict::no("the rank of its result is not known");
  if (source->offset != 0 && !factors->numbers.valid())
    return Verdict::no("0 is no level of {}, and its weights are computed", m.label(n.inputs[0]));
  if (source->offset != 0 && !one_sum_by_output(g, n))
    return Verdict::no("0 is no level of {}, and its weights are several matrices", m.label(n.inputs[0]));
  Integers found{std::move(source).take(), std::move(factors).take()};
  if (auto v = scales_fit(found); !v) return v;
  return found;
}

/// Numbers by output channel in the shape in which they meet the result.
Tensor by_channel(const Graph& g, const Node& product, const std::vector<double>& numbers) {
  if (numbers.size() == 1) return from_doubles(ElementType::f32, {}, numbers);
  const auto rank = g.type(product.outputs[0]).shape.rank();
  const Dims dims = product.op.is<MatMul>() ? Dims{static_cast<std::int64_t>(numbers.size())}
                                            : along_axis(rank, 1, numbers.size());
  return from_doubles(ElementType::f32, dims, numbers);
}

/// The bias as an operand of Add.
ValueId bias_operand(Rewrite& r, const Node& product) {
  const Graph& g = r.graph();
  const auto v = product.inputs[2];
  if (product.op.is<MatMul>()) return v;
  const auto rank = g.type(product.outputs[0]).shape.rank();
  if (const auto* t = g.constant(v))
    return r.constant(t->to_aligned().reshaped(along_axis(rank, 1, t->size())), g.value(v).name);
  Ints pattern(rank, 1);
  pattern[1] = -1;
  return r.add(Reshape{}, {v, r.constant(ints_tensor(pattern))});
}

/// Scales of a depthwise convolution's inputs by output channel.
std::vector<double> by_output(const Graph& g, const Node& n, const std::vector<double>& scale) {
  if (scale.size() == 1) return scale;
  const auto outputs = static_cast<std::size_t>(g.type(n.inputs[1]).shape[0].size());
  std::vector<double> out(outputs);
  for (std::size_t i = 0; i < outputs; ++i) out[i] = scale[i / (outputs / scale.size())];
  return out;
}

/// The sums of weights that an output's taps have, over the input channels: [outputs, 1, taps...].
Tensor tap_sums(const Graph& g, const Node& n, const Factors& f) {
  const auto axis = output_axis(g, n);
  const auto& dims = f.numbers.shape();
  std::size_t inner = 1, taps = 1;
  for (std::size_t i = axis + 1; i < dims.size(); ++i) inner *= static_cast<std::size_t>(dims[i]);
  const bool matrix = n.op.is<MatMul>();
  for (std::size_t i = 2; i < dims.size() && !matrix; ++i) taps *= static_cast<std::size_t>(dims[i]);
  const auto outputs = axis < dims.size() ? static_cast<std::size_t>(dims[axis]) : 1;
  const auto numbers = to_doubles(f.numbers);
  const auto zero = f.zero_points.valid() ? to_doubles(f.zero_points) : std::vector<double>{0};
  std::vector<double> sums(outputs * taps, 0);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto o = i / inner % outputs;
    sums[o * taps + i % taps] += (numbers[i] - zero[o % zero.size()]) * f.scale[o % f.scale.size()];
  }
  Dims out(dims);
  if (matrix) out = {0, 1};
  out[0] = static_cast<std::int64_t>(outputs);
  out[1] = 1;
  return from_doubles(ElementType::f64, out, sums);
}

/// What the source's offset adds to the results: one number for each output channel or, where the border
/// cuts taps off, for each position.
Tensor offsets(const Graph& g, const Node& n, const Integers& found) {
  const auto sums = tap_sums(g, n, found.factors);
  if (pads(n)) {
    auto op = *n.op.as<Convolution>();
    Dims x{1, op.groups};  // the batch may be unknown
    const auto& shape = g.type(n.inputs[0]).shape;
    for (std::size_t i = 2; i < shape.rank(); ++i) x.push_back(shape[i].size());
    const std::vector<double> all(element_count(x), found.source.offset);
    Graph one;
    const auto y =
        one.add(op, {one.add_constant(from_doubles(ElementType::f64, x, all)), one.add_constant(sums)});
    const Node& conv = one.node(one.producer(y));
    return convert(evaluate_node(conv, {*one.constant(conv.inputs[0]), sums}, {}).at(0), ElementType::f32);
  }
  const auto outputs = static_cast<std::size_t>(sums.shape()[0]);
  const auto values = to_doubles(sums);
  std::vector<double> out(outputs, 0);
  for (std::size_t i = 0; i < values.size(); ++i)
    out[i / (values.size() / outputs)] += values[i] * found.source.offset;
  return by_channel(g, n, out);
}

void multiply_integers(Rewrite& r, const Integers& found) {
  const Graph& g = r.graph();
  const Node n = r.match().root_node();  // the graph changes
  const auto& [source, factors] = found;
  const auto weights =
      factors.value.valid() ? factors.value : r.constant(factors.numbers, g.value(n.inputs[1]).name);
  const auto x_zero = int8::zero_point(r, g.type(source.integers).element, source.zero_point);
  const auto w_zero = factors.zero_points.valid() ? r.constant(factors.zero_points) : ValueId{};
  std::vector<ValueId> inputs{source.integers, weights};
  const bool back = n.op.is<ConvolutionBackpropData>();
  if (back && has_input(n, 3)) inputs = {source.integers, weights, {}, n.inputs[3]};
  if (!back && (x_zero.valid() || w_zero.valid())) inputs = {source.integers, weights, {}, x_zero, w_zero};
  if (!back && !w_zero.valid() && x_zero.valid()) inputs.pop_back();
  auto y = r.add(Convert{ElementType::f32}, {r.add(Op(n.op), std::move(inputs))});
  const auto scale = times(by_output(g, n, source.scale), factors.scale);
  y = r.add(Multiply{}, {y, r.constant(by_channel(g, n, scale))});
  if (has_input(n, 2)) y = r.add(Add{}, {y, bias_operand(r, n)});
  if (source.offset != 0) y = r.add(Add{}, {y, r.constant(offsets(g, n, found))});
  int8::absorb(r, source.levels);
  for (const auto id : factors.nodes) r.absorb(id);
  r.replace(y);
}

}  // namespace

void add_int8_products(Rules& rules) {
  const auto product = is<Convolution, ConvolutionBackpropData, MatMul>(any(), any());
  rules.push_back(rule("int8-product",
                       "Convolutions and matrix products of quantised operands multiply their integers",
                       RuleSet::integers, product)
                      .when(operands)
                      .make(multiply_integers));
}

}  // namespace lamina
