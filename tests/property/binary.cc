/// Convolutions of +1 and -1, as binary networks have them.
#include <cmath>

#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

/// Two levels by a threshold, by a range, or by one or the other per channel.
std::optional<ValueId> binarised(GraphBuilder& b, ValueId x, bool bits) {
  Dims range;
  if (b.percent(40)) {
    range = Dims(b.rank(x), 1);
    range[1] = b.dims(x)[1];
  }
  auto low = b.floats(range, -0.6, -0.1), high = b.floats(range, 0.1, 0.5);
  if (b.percent(40)) high = low;  // kept where nothing is computed before
  if (b.percent(20)) std::swap(low, high);
  auto out_low = b.number(bits ? 0 : -1), out_high = b.number(1);
  if (b.percent(25)) std::swap(out_low, out_high);
  return b.add(FakeQuantize{2}, {x, low, high, out_low, out_high});
}

void random_window(GraphBuilder& b, Window& w, const Dims& kernel) {
  for (const auto k : kernel) {
    w.strides.push_back(b.one_of<std::int64_t>({1, 1, 2, 3}));
    w.dilations.push_back(b.percent(20) ? 2 : 1);
    w.pads_begin.push_back(b.one_of<std::int64_t>({0, k / 2, k / 2, 2}));
    w.pads_end.push_back(b.percent(70) ? w.pads_begin.back() : b.below(3));
  }
  if (b.percent(10)) {
    w.auto_pad = b.one_of({AutoPad::same_upper, AutoPad::same_lower, AutoPad::valid});
    w.pads_begin.clear();
    w.pads_end.clear();
  }
}

/// +1 and -1, perhaps times a number per output; seldom something else among them.
ValueId sign_weights(GraphBuilder& b, const Dims& dims) {
  std::vector<float> values(element_count(dims));
  const auto size = values.size() / static_cast<std::size_t>(dims[0]);
  const bool scaled = b.percent(30);
  float scale = 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (scaled && i % size == 0) scale = static_cast<float>(b.real(0.1, 2));
    values[i] = b.percent(50) ? scale : -scale;
  }
  if (b.percent(10)) values.back() = 0.5F;
  return b.constant(Tensor::of(dims, values));
}

/// `q` has two levels: 0 and 1, or others around 0.
std::optional<ValueId> convolved(GraphBuilder& b, ValueId q, bool bits) {
  const auto dims = b.dims(q);
  const auto c = dims[1];
  std::int64_t groups = 1, out = b.channels();
  if (b.percent(30))
    groups = out = c;
  else if (b.percent(15) && c % 2 == 0)
    groups = 2, out = 2 * b.between(1, 5);
  Dims w{out, c / groups};
  const auto size = b.one_of<std::int64_t>({1, 3, 3, 3, 2, 5});
  for (std::size_t i = 2; i < dims.size(); ++i) w.push_back(b.percent(15) ? b.between(1, 4) : size);
  const Dims kernel(w.begin() + 2, w.end());
  if (!bits && b.percent(30)) {
    BinaryConvolution op;
    random_window(b, op, kernel);
    op.groups = groups;
    op.pad_value = static_cast<double>(b.between(-1, 1));
    const auto seed = static_cast<std::uint64_t>(b.below(1000));
    return b.add(op, {q, b.constant(seeded_tensor(ElementType::u1, w, seed))});
  }
  Convolution op;
  random_window(b, op, kernel);
  op.groups = groups;
  std::vector<ValueId> inputs{q, sign_weights(b, w)};
  if (b.percent(40)) inputs.push_back(b.floats({out}));
  return b.add(op, inputs);
}

void add_binary_convolution(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const bool bits = b.percent(40);
  if (const auto q = binarised(b, *x, bits)) convolved(b, *q, bits);
}

/// Layers of a binary network: only signs are read between them, by one or by two.
void add_binary_layers(GraphBuilder& b) {
  auto x = b.pick_f32(3, 5);
  for (auto layers = b.between(2, 3); layers > 0 && x; --layers) {
    const bool bits = b.percent(40);
    const auto q = binarised(b, *x, bits);
    if (!q) return;
    if (b.percent(25)) convolved(b, *q, bits);
    x = convolved(b, *q, bits);
    if (x && b.percent(50)) {
      Dims each(b.rank(*x), 1);
      each[1] = b.dims(*x)[1];
      const auto scaled = b.add(Multiply{}, {*x, b.floats(each)});
      x = scaled && b.percent(60) ? b.add(Add{}, {*scaled, b.floats(each)}) : scaled;
    }
  }
}

}  // namespace

void add_binary_families(Families& families) {
  families.push_back({"binary convolution", 4, add_binary_convolution});
  families.push_back({"binary layers", 2, add_binary_layers});
}

}  // namespace lamina::testing
