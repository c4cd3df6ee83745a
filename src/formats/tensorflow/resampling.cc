/// Resizing whose weights follow from the sizes: by areas, by kernels, by TensorFlow's own cubic.
#include "formats/tensorflow/resampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>

#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/generation.h"

namespace lamina::tensorflow {
namespace {

constexpr std::int64_t kMostPixels = 1 << 16, kMostWeights = 1 << 24;
constexpr std::size_t kMostTaps = 8;  // that are gathered one by one

/// The pixels that one pixel of the result is made of.
struct Span {
  std::int64_t first = 0;
  std::vector<float> weights;
};
using Spans = std::vector<Span>;

void normalize(std::vector<float>& weights) {
  float sum = 0;
  for (auto w : weights) sum += w;
  if (std::abs(sum) < 1000 * std::numeric_limits<float>::min()) return;
  for (auto& w : weights) w /= sum;
}

/// Weights of pixels beyond the border go to those at the border.
Span within(std::int64_t first, const std::vector<float>& weights, std::int64_t size) {
  const auto last = first + std::ssize(weights) - 1;
  Span out{std::clamp<std::int64_t>(first, 0, size - 1), {}};
  out.weights.assign(static_cast<std::size_t>(std::clamp<std::int64_t>(last, 0, size - 1) - out.first + 1),
                     0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto at = std::clamp<std::int64_t>(first + static_cast<std::int64_t>(i), 0, size - 1);
    out.weights[static_cast<std::size_t>(at - out.first)] += weights[i];
  }
  return out;
}

ValueId resampled(Call& c, ValueId v, std::int64_t axis, const Spans& spans, std::int64_t size) {
  std::size_t taps = 1;
  for (const auto& s : spans) taps = std::max(taps, s.weights.size());
  const auto count = std::ssize(spans);
  if (taps > kMostTaps) {
    if (count > kMostWeights / size) c.unsupported("resizing from {} to {} pixels", size, count);
    Tensor matrix(ElementType::f32, {count, size});
    std::fill_n(reinterpret_cast<float*>(matrix.raw()), matrix.size(), 0.0f);
    for (std::size_t i = 0; i < spans.size(); ++i)
      std::copy(
          spans[i].weights.begin(), spans[i].weights.end(),
          reinterpret_cast<float*>(matrix.raw()) + static_cast<std::int64_t>(i) * size + spans[i].first);
    return c.add(Einsum{axis == 1 ? "oh,nhwc->nowc" : "ow,nhwc->nhoc"}, {c.constant(std::move(matrix)), v});
  }
  ValueId sum;
  for (std::size_t k = 0; k < taps; ++k) {
    Ints places;
    std::vector<float> weights;
    for (const auto& s : spans) {
      const bool there = k < s.weights.size();
      places.push_back(there ? s.first + static_cast<std::int64_t>(k) : 0);
      weights.push_back(there ? s.weights[k] : 0);
    }
    const auto taken = c.add(Gather{}, {v, c.ints_constant(places), c.int_constant(axis)});
    const Dims dims = axis == 1 ? Dims{count, 1, 1} : Dims{count, 1};
    const auto part = c.add(Multiply{}, {taken, c.constant(Tensor::of<float>(dims, weights))});
    sum = sum.valid() ? c.add(Add{}, {sum, part}) : part;
  }
  return sum;
}

struct Sizes {
  std::int64_t from = 0, to = 0;
  double scale = 1;  ///< pixels of the input for one of the result
};

/// Height and width of the resized image. NotSupported while they are not known.
std::array<Sizes, 2> sizes_of(Call& c) {
  const auto wanted = c.wanted_ints(c.in(1), "sizes of the result");
  if (wanted.size() != 2 || c.known_rank(c.in(0)) != 4)
    c.fail("the image is {} and has {} sizes, wanted a rank of 4 and 2", to_string(c.shape(c.in(0))),
           wanted.size());
  std::array<Sizes, 2> out;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& size = c.shape(c.in(0))[i + 1];
    if (!size.known()) c.unsupported("an image of unknown size");
    if (size.size() > kMostPixels || wanted[i] > kMostPixels)
      c.unsupported("resizing from {} to {} pixels", size.size(), wanted[i]);
    if (size.size() < 1 || wanted[i] < 1) c.fail("resizes from {} to {} pixels", size.size(), wanted[i]);
    out[i] = {size.size(), wanted[i], static_cast<float>(size.size()) / static_cast<float>(wanted[i])};
    if (c.flag("align_corners") && wanted[i] > 1)
      out[i].scale = static_cast<float>(size.size() - 1) / static_cast<float>(wanted[i] - 1);
  }
  return out;
}

template <class F>
Values by_axes(Call& c, F span_of) {
  const auto sizes = sizes_of(c);
  auto v = c.convert(c.in(0), ElementType::f32);
  for (std::size_t i = 0; i < 2; ++i) {
    Spans spans;
    std::int64_t weights = 0;
    for (std::int64_t x = 0; x < sizes[i].to; ++x) {
      spans.push_back(span_of(sizes[i], x, i));
      if ((weights += std::ssize(spans.back().weights)) > kMostWeights)
        c.unsupported("resizing from {} to {} pixels", sizes[i].from, sizes[i].to);
    }
    v = resampled(c, v, static_cast<std::int64_t>(i) + 1, spans, sizes[i].from);
  }
  return {v};
}

/// The mean of the area that a pixel of the result covers.
Values convert_area(Call& c) {
  return by_axes(c, [](const Sizes& s, std::int64_t x, std::size_t) {
    const auto scale = static_cast<float>(s.scale);
    const auto begin = static_cast<float>(x) * scale, end = static_cast<float>(x + 1) * scale;
    const auto first = static_cast<std::int64_t>(std::floor(begin));
    std::vector<float> weights;
    for (auto p = first; static_cast<float>(p) < std::ceil(end); ++p) {
      const auto low = std::max(begin, static_cast<float>(p)),
                 high = std::min(end, static_cast<float>(p + 1));
      weights.push_back((high - low) / scale);
    }
    return within(first, weights, s.from);
  });
}

/// Cubic weights at 0 to 1 and at 1 to 2, of a table with steps of 1/1024.
struct Cubic {
  float a;
  float near(std::int64_t step) const {
    const auto x = static_cast<float>(step) / 1024;
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  }
  float far(std::int64_t step) const {
    const auto x = static_cast<float>(step) / 1024 + 1;
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  }
};

using Kernel = float (*)(float);

float sinc(float x) { return x == 0 ? 1 : std::sin(x) / x; }

template <int kRadius>
float lanczos(float x) {
  constexpr auto kPi = std::numbers::pi_v<float>;
  return x > kRadius ? 0 : sinc(kPi * x) * sinc(kPi * x / kRadius);
}

float gaussian(float x) { return x >= 1.5f ? 0 : std::exp(-x * x / (2 * 0.5f * 0.5f)); }
float box(float x) { return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0; }
float triangle(float x) { return x < 1 ? 1 - x : 0; }
float keys_cubic(float x) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : ((1.5f * x - 2.5f) * x) * x + 1;
}
float mitchell_cubic(float x) {
  if (x >= 2) return 0;
  if (x >= 1) return (((-7.0f / 18) * x + 2) * x - 10.0f / 3) * x + 16.0f / 9;
  return (((7.0f / 6) * x - 2) * x) * x + 8.0f / 9;
}

std::pair<Kernel, float> kernel_of(const Call& c) {
  static constexpr std::tuple<std::string_view, Kernel, float> kAll[] = {
      {"lanczos1", lanczos<1>, 1},  {"lanczos3", lanczos<3>, 3},
      {"lanczos5", lanczos<5>, 5},  {"gaussian", gaussian, 1.5f},
      {"box", box, 0.5f},           {"triangle", triangle, 1},
      {"keyscubic", keys_cubic, 2}, {"mitchellcubic", mitchell_cubic, 2}};
  const auto wanted = c.s("kernel_type", "lanczos3");
  for (const auto& [name, kernel, radius] : kAll)
    if (name == wanted) return {kernel, radius};
  c.unsupported("the kernel \"{}\"", wanted);
}

/// Sizes, scales, translations; with antialias the kernel is as wide as pixels are far from each other.
Values convert_scale_and_translate(Call& c) {
  const auto [kernel, radius] = kernel_of(c);
  const auto scales = c.known(c.in(2)), moves = c.known(c.in(3));
  if (!scales || !moves) c.unsupported("a scale or translation that is computed from data");
  const auto scale = to_floats(*scales), move = to_floats(*moves);
  if (scale.size() != 2 || move.size() != 2 || !(scale[0] > 0) || !(scale[1] > 0))
    c.fail("has {} scales and {} translations, wanted 2 positive ones", scale.size(), move.size());
  const bool antialias = c.flag("antialias", true);
  return by_axes(c, [&](const Sizes& s, std::int64_t x, std::size_t axis) {
    const auto inverse = 1 / scale[axis];
    const auto wide = antialias ? std::max(inverse, 1.0f) : 1.0f;
    const auto at = (static_cast<float>(x) + 0.5f) * inverse - inverse * move[axis];
    if (!(at >= 0) || at > static_cast<float>(s.from)) return Span{};
    const auto reach = radius * wide;
    const auto end = static_cast<float>(s.from - 1);
    const auto first = static_cast<std::int64_t>(std::clamp(std::ceil(at - reach - 0.5f), 0.0f, end));
    const auto last = static_cast<std::int64_t>(std::clamp(std::floor(at + reach - 0.5f), 0.0f, end));
    Span out{first, {}};
    for (auto p = first; p <= last; ++p)
      out.weights.push_back(kernel(std::abs((static_cast<float>(p) + 0.5f - at) / wide)));
    normalize(out.weights);
    return out;
  });
}

}  // namespace

Values resize_bicubic(Call& c) {
  const bool half = c.flag("half_pixel_centers");
  return by_axes(c, [&](const Sizes& s, std::int64_t x, std::size_t) {
    const auto scale = static_cast<float>(s.scale);
    const auto at = half ? (static_cast<float>(x) + 0.5f) * scale - 0.5f : static_cast<float>(x) * scale;
    const auto first = static_cast<std::int64_t>(std::floor(at));
    const auto step = static_cast<std::int64_t>(std::lrint((at - static_cast<float>(first)) * 1024));
    const Cubic cubic{half ? -0.5f : -0.75f};
    std::vector<float> weights{cubic.far(step), cubic.near(step), cubic.near(1024 - step),
                               cubic.far(1024 - step)};
    if (!half) return within(first - 1, weights, s.from);
    for (std::int64_t i = 0; i < 4; ++i)  // what is outside does not count
      if (first - 1 + i < 0 || first - 1 + i >= s.from) weights[static_cast<std::size_t>(i)] = 0;
    normalize(weights);
    return within(first - 1, weights, s.from);
  });
}

void register_resampling(ConverterTable& t) {
  t.add("ResizeArea", convert_area);
  t.add("ScaleAndTranslate", convert_scale_and_translate);
}

}  // namespace lamina::tensorflow
