#include "tests/sweep/layer.h"

#include <algorithm>
#include <cmath>

#include "base/element_types.h"
#include "base/error.h"
#include "graph/text.h"
#include "ops/eval.h"
#include "ops/operators.h"

namespace lamina::sweep {
namespace {

std::string list_text(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }

/// Numbers between -size and size, of which there are many different ones.
std::vector<float> uniform(std::size_t count, float size, std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<float> out(count);
  for (auto& v : out) v = size * random.uniform();
  return out;
}

/// The whole range of 8 bits, the bounds often.
Tensor bytes(ElementType type, const Dims& dims, std::uint64_t seed) {
  SplitMix random(seed);
  Tensor out(type, dims);
  auto* to = reinterpret_cast<std::uint8_t*>(out.raw());
  for (std::size_t i = 0; i < out.bytes(); ++i) {
    const auto bits = random.next();
    to[i] = bits >> 61 == 0 ? std::uint8_t{0x7f} : bits >> 61 == 1 ? std::uint8_t{0x80} : bits & 0xff;
  }
  return out;
}

Tensor numbers(ElementType type, const Dims& dims, float size, std::uint64_t seed) {
  if (is_byte(type)) return bytes(type, dims, seed);
  const auto floats = Tensor::of(dims, uniform(element_count(dims), size, seed));
  return type == ElementType::f32 ? floats : convert(floats, type);
}

/// Puts tensors in the place of the graph's constants, in order.
void fill_constants(Graph& graph, const std::vector<Tensor>& tensors) {
  std::size_t next = 0;
  for (std::uint32_t i = 0, count = static_cast<std::uint32_t>(graph.value_slots()); i < count; ++i) {
    const auto* old = graph.constant(ValueId{i});
    if (!old) continue;
    const auto& tensor = tensors.at(next++);
    LAMINA_CHECK(tensor.shape() == old->shape() && tensor.element_type() == old->element_type(),
                 "the sweep's constants are out of order");
    graph.replace(ValueId{i}, graph.add_constant(tensor));
  }
  LAMINA_CHECK(next == tensors.size(), "the sweep has constants left over");
}

Dims coordinates(std::int64_t index, const Dims& dims) {
  Dims p(dims.size());
  for (auto i = dims.size(); i-- > 0; index /= dims[i]) p[i] = index % dims[i];
  return p;
}

std::int64_t index_of(const Dims& p, const Dims& dims) {
  std::int64_t index = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) index = index * dims[i] + p[i];
  return index;
}

/// The sum of products and how far off one of floats may be.
class Sum {
 public:
  void add(double a, double b) {
    const double product = a * b;
    sum_ += product;
    squares_ += product * product;
    ++count_;
  }
  /// Sums of integers are exact, but a signed source counts from 128 on for oneDNN, and that much is taken
  /// off in f32 where stages follow.
  Expected with_bias(double bias, bool integers) const {
    if (integers) return {sum_ + bias, 0x1p-24 * 128 * 64 * static_cast<double>(count_)};
    const double steps = static_cast<double>(count_) + 1;
    return {sum_ + bias, 0x1p-24 * (8 * std::sqrt(steps) * std::sqrt(squares_ + bias * bias) +
                                    4 * std::fabs(sum_) + 4 * std::fabs(bias)) +
                             1e-37};
  }

 private:
  double sum_ = 0, squares_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace

Layer::Layer(const Case& c) : c_(c), y_(result_of(c)) {
  LAMINA_CHECK(!y_.empty(), "a case of the sweep without a result");
  if (c.kind == Kind::product) channel_axis_ = y_.size() - 1;
  channel_dims_.assign(y_.size(), 1);
  channel_dims_[channel_axis_] = y_[channel_axis_];
  make_graph();
  make_numbers();
}

void Layer::make_graph() {
  const auto type = lamina::name_of(c_.type);
  const auto weights = fmt::format("{}{}", is_byte(c_.type) ? "i8" : type, list_text(c_.w)),
             bias = fmt::format("f32[{}]", y_[channel_axis_]), y = list_text(y_);
  std::string inputs = fmt::format("x: {}{}", type, list_text(c_.x)), body, extras, parameters;
  if (c_.given) inputs += ", w: " + weights + (c_.bias ? ", b: " + bias : "");
  if (!c_.given) body += "w = const " + weights + " fill(0)\n";
  if (!c_.given && c_.bias) body += "b = const " + bias + " fill(0)\n";
  std::string stages, last = "v0";
  if (is_byte(c_.type) && !c_.stages.empty()) {
    stages = fmt::format(
        "v0f = Convert(v0) destination_type=f32\nv0c = const f32{} fill(0)\n"
        "v0s = Multiply(v0f, v0c)\n",
        list_text(channel_dims_));
    last = "v0s";
  }
  for (std::size_t i = 0; i < c_.stages.size(); ++i) {
    const auto to = fmt::format("v{}", i + 1), extra = fmt::format("e{}", i + 1);
    if (reads_tensor(c_.stages[i])) {
      inputs += fmt::format(", {}: f32{}", extra, y);
      parameters += fmt::format(", {}: f32{}", extra, y);
      extras += ", " + extra;
    }
    stages += text_of(c_.stages[i], last, to, list_text(channel_dims_), extra);
    last = to;
  }
  const bool transposed = c_.kind == Kind::deconvolution;
  std::string call = fmt::format("{}(x, w, {}, {}_, _{})",
                                 c_.kind == Kind::product ? "MatMul"
                                 : transposed             ? "ConvolutionBackpropData"
                                                          : "Convolution",
                                 c_.bias ? "b" : "_", transposed ? "_, " : "", extras);
  if (c_.kind == Kind::product)
    call += fmt::format(" transpose_a={} transpose_b={}", c_.transpose_x, c_.transpose_w);
  else
    call += fmt::format(" strides={} dilations={} pads_begin={} pads_end={} groups={}", list_text(c_.strides),
                        list_text(c_.dilations), list_text(c_.begin), list_text(c_.end), c_.groups);
  if (transposed) call += " output_padding=" + list_text(c_.padding);
  if (c_.type == ElementType::bf16) call += " sums=f32";
  if (!stages.empty())
    call += fmt::format(" {{\nbody graph (v0: {}{}{}) -> ({}) {{\n{}}}\n}}", is_byte(c_.type) ? "i32" : "f32",
                        y, parameters, last, stages);
  graph_ = parse_graph(fmt::format("graph ({}) -> (y) {{\n{}y = {}\n}}\n", inputs, body, call), operators());
  node_ = graph_.order().back();
}

void Layer::make_numbers() {
  const auto depth = static_cast<double>(depth_of(c_));
  const auto w_type = is_byte(c_.type) ? ElementType::i8 : c_.type;
  // Sums of about one, so that an error anywhere is one of every epilogue.
  const auto size = static_cast<float>(std::exp2(-std::round(std::log2(std::sqrt(depth)) - 0.5)));
  const auto x = numbers(c_.type, c_.x, 1, c_.seed * 16), w = numbers(w_type, c_.w, size, c_.seed * 16 + 1),
             bias = c_.bias ? numbers(ElementType::f32, {y_[channel_axis_]}, 2, c_.seed * 16 + 2) : Tensor();
  std::vector<Tensor> constants, body_constants, extras;
  if (!c_.given) constants.push_back(w);
  if (!c_.given && c_.bias) constants.push_back(bias);
  if (is_byte(c_.type) && !c_.stages.empty()) {
    auto scales = uniform(element_count(channel_dims_), 1, c_.seed * 16 + 3);
    for (auto& s : scales) s = (s + 2) / static_cast<float>(11000 * std::sqrt(depth));
    body_constants.push_back(Tensor::of(channel_dims_, scales));
    operands_.push_back(scales);
  }
  for (std::size_t i = 0; i < c_.stages.size(); ++i) {
    const auto& word = c_.stages[i];
    const auto seed = c_.seed * 16 + 4 + i;
    const auto list = constants_of(word, channel_dims_, seed);
    body_constants.insert(body_constants.end(), list.begin(), list.end());
    if (reads_tensor(word)) extras.push_back(numbers(ElementType::f32, y_, 1, seed));
    operands_.push_back(reads_tensor(word) ? to_floats(extras.back())
                        : list.empty()     ? std::vector<float>()
                                           : to_floats(list[0]));
  }
  fill_constants(graph_, constants);
  auto& bodies = graph_.bodies(node_);
  if (!bodies.empty()) fill_constants(bodies[0], body_constants);
  inputs_ = {x, w, bias};
  inputs_.resize(graph_.node(node_).inputs.size() - extras.size());
  inputs_.insert(inputs_.end(), extras.begin(), extras.end());
  x_ = to_floats(x), w_ = to_floats(w);
  if (c_.bias) bias_ = to_floats(bias);
}

Expected Layer::convolution_at(const Dims& p) const {
  const auto rank = y_.size();
  const auto inputs = c_.w[1], group = p[1] / (c_.w[0] / c_.groups);
  std::vector<std::pair<std::int64_t, std::int64_t>> taps;  // in a plane of x, in a window of w
  Dims k(rank, 0);
  const Dims window(c_.w.begin() + 2, c_.w.end()), plane(c_.x.begin() + 2, c_.x.end());
  const auto count = static_cast<std::int64_t>(element_count(window));
  for (std::int64_t t = 0; t < count; ++t) {
    const auto at = coordinates(t, window);
    Dims in(rank - 2);
    bool inside = true;
    for (std::size_t i = 0; i + 2 < rank; ++i) {
      in[i] = p[i + 2] * c_.strides[i] - c_.begin[i] + at[i] * c_.dilations[i];
      inside = inside && in[i] >= 0 && in[i] < plane[i];
    }
    if (inside) taps.emplace_back(index_of(in, plane), t);
  }
  Sum sum;
  const auto plane_size = static_cast<std::int64_t>(element_count(plane));
  for (std::int64_t i = 0; i < inputs; ++i) {
    const float* x = x_.data() + (p[0] * c_.x[1] + group * inputs + i) * plane_size;
    const float* w = w_.data() + (p[1] * inputs + i) * count;
    for (const auto& [from, tap] : taps) sum.add(x[from], w[tap]);
  }
  return sum.with_bias(c_.bias ? bias_[static_cast<std::size_t>(p[1])] : 0, is_byte(c_.type));
}

Expected Layer::deconvolution_at(const Dims& p) const {
  const auto rank = y_.size();
  const auto outputs = c_.w[1], inputs = c_.x[1] / c_.groups, group = p[1] / outputs;
  std::vector<std::pair<std::int64_t, std::int64_t>> taps;
  const Dims window(c_.w.begin() + 2, c_.w.end()), plane(c_.x.begin() + 2, c_.x.end());
  const auto count = static_cast<std::int64_t>(element_count(window));
  for (std::int64_t t = 0; t < count; ++t) {
    const auto at = coordinates(t, window);
    Dims in(rank - 2);
    bool inside = true;
    for (std::size_t i = 0; i + 2 < rank; ++i) {
      const auto from = p[i + 2] + c_.begin[i] - at[i] * c_.dilations[i];
      in[i] = from / c_.strides[i];
      inside = inside && from >= 0 && from % c_.strides[i] == 0 && in[i] < plane[i];
    }
    if (inside) taps.emplace_back(index_of(in, plane), t);
  }
  Sum sum;
  const auto plane_size = static_cast<std::int64_t>(element_count(plane));
  for (std::int64_t i = 0; i < inputs; ++i) {
    const auto channel = group * inputs + i;
    const float* x = x_.data() + (p[0] * c_.x[1] + channel) * plane_size;
    const float* w = w_.data() + (channel * outputs + p[1] % outputs) * count;
    for (const auto& [from, tap] : taps) sum.add(x[from], w[tap]);
  }
  return sum.with_bias(c_.bias ? bias_[static_cast<std::size_t>(p[1])] : 0, is_byte(c_.type));
}

Expected Layer::product_at(const Dims& p) const {
  const auto matrix_of = [&](const Dims& dims) {
    std::int64_t index = 0;
    for (std::size_t i = 0; i + 2 < dims.size(); ++i)
      index = index * dims[i] + (dims[i] == 1 ? 0 : p[i + y_.size() - dims.size()]);
    return index * dims[dims.size() - 1] * dims[dims.size() - 2];
  };
  const auto row = p[p.size() - 2], column = p.back(), depth = depth_of(c_);
  const auto x_step = c_.transpose_x ? c_.x.back() : 1, w_step = c_.transpose_w ? 1 : c_.w.back();
  const float* x = x_.data() + matrix_of(c_.x) + row * (c_.transpose_x ? 1 : c_.x.back());
  const float* w = w_.data() + matrix_of(c_.w) + column * (c_.transpose_w ? c_.w.back() : 1);
  Sum sum;
  for (std::int64_t i = 0; i < depth; ++i) sum.add(x[i * x_step], w[i * w_step]);
  return sum.with_bias(c_.bias ? bias_[static_cast<std::size_t>(column)] : 0, is_byte(c_.type));
}

Expected Layer::sum_at(const Dims& p) const {
  if (c_.kind == Kind::product) return product_at(p);
  return c_.kind == Kind::deconvolution ? deconvolution_at(p) : convolution_at(p);
}

Expected Layer::at(std::int64_t index) const {
  const auto p = coordinates(index, y_);
  auto e = sum_at(p);
  std::size_t next = 0;
  const auto operand = [&](bool whole) {
    const auto& list = operands_.at(next);
    const auto at = static_cast<std::size_t>(whole ? index : p[channel_axis_]);
    return list.empty() ? 0.0 : list.size() == 1 ? list[0] : list.at(at);
  };
  if (is_byte(c_.type) && !c_.stages.empty()) {
    const double scale = operand(false);
    e = {e.value * scale, scale * e.error + 0x1p-22 * std::fabs(e.value * scale)};
    ++next;
  } else if (is_byte(c_.type)) {
    e.error = 0;
  }
  for (const auto& word : c_.stages) {
    e = applied(word, e, operand(reads_tensor(word)));
    ++next;
  }
  return e;
}

std::vector<std::int64_t> Layer::points(std::size_t count) const {
  static constexpr std::int64_t kEdges[] = {0, 1, 7, 8, 15, 16, 17, 23, 24, 31, 32, 33, 47, 48, 63, 64};
  SplitMix random(c_.seed * 16 + 15);
  const auto total = static_cast<std::int64_t>(element_count(y_));
  std::vector<std::int64_t> out{0, total - 1};
  if (total <= static_cast<std::int64_t>(count)) {
    out.clear();
    for (std::int64_t i = 0; i < total; ++i) out.push_back(i);
    return out;
  }
  while (out.size() < count) {
    Dims p(y_.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      const auto size = static_cast<std::uint64_t>(y_[i]);
      const auto edge = kEdges[random.below(std::size(kEdges))];
      const auto kind = random.below(8);
      if (kind == 0)
        p[i] = y_[i] - 1 - std::min(edge, y_[i] - 1);
      else if (kind == 1)
        p[i] = std::min(edge, y_[i] - 1);
      else
        p[i] = static_cast<std::int64_t>(random.below(size));
    }
    out.push_back(index_of(p, y_));
  }
  return out;
}

}  // namespace lamina::sweep
