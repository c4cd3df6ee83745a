/// Reference evaluation of the convolutions: tiles of a matrix product whose right operand is gathered on the
/// way.
#include "base/parallel.h"
#include "ops/convolution.h"
#include "ops/product.h"

namespace lamina {
namespace {

using Axes = std::array<std::int64_t, 3>;

/// The sizes of a convolution as one with three spatial axes (missing ones in front have size 1).
struct Geometry {
  std::int64_t batch, groups, in_channels, out_channels;  // channels of one group
  Axes in, out, kernel, stride, dilation, pad;
  std::int64_t in_size, out_size, kernel_size;
  bool no_input = false, no_weights = false;
};

Axes three(std::span<const std::int64_t> list, std::int64_t fallback) {
  Axes out{fallback, fallback, fallback};
  std::copy(list.begin(), list.end(), out.end() - static_cast<std::ptrdiff_t>(list.size()));
  return out;
}

std::int64_t product(const Axes& a) { return a[0] * a[1] * a[2]; }

Geometry geometry(const Dims& x, const Dims& w, const Dims& y, std::int64_t groups,
                  const ResolvedWindow& win) {
  Geometry g;
  g.batch = x[0];
  g.groups = groups;
  g.in_channels = x[1] / groups;
  g.out_channels = y[1] / groups;
  g.in = three(std::span(x).subspan(2), 1);
  g.out = three(std::span(y).subspan(2), 1);
  g.kernel = three(std::span(w).subspan(2), 1);
  g.stride = three(win.strides, 1);
  g.dilation = three(win.dilations, 1);
  g.pad = three(win.pads_begin, 0);
  g.out_size = product(g.out);
  g.no_input = element_count(x) == 0;
  g.no_weights = element_count(w) == 0;
  g.in_size = g.no_input ? 0 : product(g.in);
  g.kernel_size = g.no_weights ? 1 : product(g.kernel);
  return g;
}

/// Coordinates of a flat position.
Axes position(std::int64_t flat, const Axes& size) {
  return {flat / (size[1] * size[2]), flat / size[2] % size[1], flat % size[2]};
}

bool inside(const Axes& p, const Axes& size) {
  return p[0] >= 0 && p[0] < size[0] && p[1] >= 0 && p[1] < size[1] && p[2] >= 0 && p[2] < size[2];
}

/// Products per piece of a parallel loop: less is not worth a thread.
constexpr std::int64_t kGrain = 200'000;

template <class S>
struct Operands {
  const S* x;
  const S* w;
  S outside;  // stands where the window leaves the picture
  S x_zero = 0;
  std::vector<S> w_zero;  // per output channel, or none

  S zero_of(std::int64_t channel) const {
    return w_zero.empty() ? S(0) : w_zero[static_cast<std::size_t>(channel)];
  }
};

/// Zero points of integers, which begin at that input.
template <class S>
void set_zero_points(EvalContext& c, std::size_t first, std::int64_t channels, Operands<S>& o) {
  if (c.has(first)) o.x_zero = static_cast<S>(c.ints(first).at(0));
  if (!c.has(first + 1)) return;
  for (auto z : c.ints(first + 1)) o.w_zero.push_back(static_cast<S>(z));
  if (o.w_zero.size() == 1) o.w_zero.resize(static_cast<std::size_t>(channels), o.w_zero[0]);
}

/// Writes the input under the windows of pixels [first, last): element (i, kz, ky, kx) x pixel.
template <class S, class T>
void gather(const Geometry& g, const Operands<S>& o, const S* x, std::int64_t first, std::int64_t last,
            std::int64_t k0, std::int64_t k1, const Strips<T>& b) {
  std::vector<Axes> corner;
  for (std::int64_t p = first; p < last; ++p) {
    const auto at = position(p, g.out);
    corner.push_back(
        {at[0] * g.stride[0] - g.pad[0], at[1] * g.stride[1] - g.pad[1], at[2] * g.stride[2] - g.pad[2]});
  }
  for (std::int64_t k = k0; k < k1; ++k) {
    const S* plane = x + k / g.kernel_size * g.in_size;
    const auto tap = position(k % g.kernel_size, g.kernel);
    const Axes step{tap[0] * g.dilation[0], tap[1] * g.dilation[1], tap[2] * g.dilation[2]};
    for (std::int64_t j = 0; j < last - first; ++j) {
      const auto& c = corner[static_cast<std::size_t>(j)];
      const Axes at{c[0] + step[0], c[1] + step[1], c[2] + step[2]};
      b.at(k - k0, j) =
          inside(at, g.in)
              ? static_cast<T>(plane[(at[0] * g.in[1] + at[1]) * g.in[2] + at[2]]) - static_cast<T>(o.x_zero)
              : static_cast<T>(o.outside);
    }
  }
}

/// Result of a convolution without bias.
template <class S>
std::vector<Sum<S>> convolve(const Geometry& g, const Operands<S>& o) {
  using T = Sum<S>;
  const std::int64_t depth = g.in_channels * g.kernel_size;
  const Pieces rows(g.out_channels, kTileRows), pixels(g.out_size, kTileCols);
  std::vector<T> y(static_cast<std::size_t>(g.batch * g.groups * g.out_channels * g.out_size));
  if (g.no_weights) return y;  // windows without input still see what stands outside
  const std::int64_t work = std::max<std::int64_t>(1, rows.size * pixels.size * depth);
  parallel_for(g.batch * g.groups * rows.number * pixels.number, kGrain / work,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t task = begin; task < end; ++task) {
                   const std::int64_t p = task % pixels.number, r = task / pixels.number % rows.number;
                   const std::int64_t ng = task / (pixels.number * rows.number), group = ng % g.groups;
                   const std::int64_t channel = group * g.out_channels + rows.begin(r),
                                      count = rows.end(r) - rows.begin(r);
                   const std::int64_t first = pixels.begin(p), last = pixels.end(p);
                   const auto sums = tile_product<T>(
                       count, last - first, depth,
                       [&](std::int64_t k0, std::int64_t k1, const Strips<T>& a) {
                         for (std::int64_t m = 0; m < count; ++m) {
                           const S* from = o.w + (channel + m) * depth;
                           const S zero = o.zero_of(channel + m);
                           for (std::int64_t k = k0; k < k1; ++k)
                             a.at(k - k0, m) = static_cast<T>(from[k]) - zero;
                         }
                       },
                       [&](std::int64_t k0, std::int64_t k1, const Strips<T>& b) {
                         gather(g, o, o.x + ng * g.in_channels * g.in_size, first, last, k0, k1, b);
                       });
                   T* to = y.data() + (ng * g.out_channels + rows.begin(r)) * g.out_size + first;
                   for (std::int64_t m = 0; m < count; ++m)
                     for (std::int64_t j = 0; j < last - first; ++j) to[m * g.out_size + j] = sums.at(m, j);
                 }
               });
  return y;
}

/// Adds the products of input pixels [first, last) to where the kernel's taps land.
void scatter(const Geometry& g, const TileSums<double>& sums, std::int64_t rows, std::int64_t first,
             std::int64_t last, double* y) {
  for (std::int64_t m = 0; m < rows; ++m) {
    double* plane = y + m / g.kernel_size * g.out_size;
    const auto tap = position(m % g.kernel_size, g.kernel);
    for (std::int64_t p = first; p < last; ++p) {
      const auto from = position(p, g.in);
      Axes to;
      for (std::size_t i = 0; i < 3; ++i) to[i] = from[i] * g.stride[i] - g.pad[i] + tap[i] * g.dilation[i];
      if (inside(to, g.out)) plane[(to[0] * g.out[1] + to[1]) * g.out[2] + to[2]] += sums.at(m, p - first);
    }
  }
}

/// Result of a transposed convolution without bias. Each task owns some output channels.
template <class S>
std::vector<double> convolve_transposed(const Geometry& g, const Operands<S>& o) {
  const Pieces channels(g.out_channels, std::max<std::int64_t>(1, kTileRows / g.kernel_size)),
      pixels(g.in_size, kTileCols);
  std::vector<double> y(static_cast<std::size_t>(g.batch * g.groups * g.out_channels * g.out_size));
  if (g.no_input || g.no_weights) return y;
  const std::int64_t row_length = g.out_channels * g.kernel_size;  // of one input channel's weights
  const std::int64_t work =
      std::max<std::int64_t>(1, channels.size * g.kernel_size * g.in_size * g.in_channels);
  parallel_for(
      g.batch * g.groups * channels.number, kGrain / work, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t task = begin; task < end; ++task) {
          const std::int64_t ng = task / channels.number, group = ng % g.groups;
          const std::int64_t first_channel = channels.begin(task % channels.number);
          const std::int64_t first_row = first_channel * g.kernel_size;
          const std::int64_t rows = channels.end(task % channels.number) * g.kernel_size - first_row;
          const S* picture = o.x + ng * g.in_channels * g.in_size;
          const S* weights = o.w + group * g.in_channels * row_length + first_row;
          for (std::int64_t p = 0; p < pixels.number; ++p) {
            const std::int64_t first = pixels.begin(p), last = pixels.end(p);
            const auto sums = tile_product<double>(
                rows, last - first, g.in_channels,
                [&](std::int64_t k0, std::int64_t k1, const Strips<double>& a) {
                  for (std::int64_t m = 0; m < rows; ++m) {
                    const double zero = o.zero_of(group * g.out_channels + first_channel + m / g.kernel_size);
                    for (std::int64_t k = k0; k < k1; ++k)
                      a.at(k - k0, m) = weights[k * row_length + m] - zero;
                  }
                },
                [&](std::int64_t k0, std::int64_t k1, const Strips<double>& b) {
                  for (std::int64_t k = k0; k < k1; ++k)
                    for (std::int64_t j = first; j < last; ++j)
                      b.at(k - k0, j - first) = picture[k * g.in_size + j] - static_cast<double>(o.x_zero);
                });
            scatter(g, sums, rows, first, last,
                    y.data() + (ng * g.out_channels + first_channel) * g.out_size);
          }
        }
      });
  return y;
}

template <class T>
void add_bias(std::vector<T>& y, const std::vector<T>& bias, std::int64_t out_size) {
  const auto channels = static_cast<std::int64_t>(bias.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] += bias[static_cast<std::size_t>(static_cast<std::int64_t>(i) / out_size % channels)];
}

template <class S>
void evaluate_as(const Convolution& op, EvalContext& c) {
  using T = Sum<S>;
  const auto &x = c.dims(0), &w = c.dims(1);
  const Shape shape = Shape::of(x);
  const auto win = resolve(op, std::span(shape.dims()).subspan(2), std::span(w).subspan(2));
  const auto g = geometry(x, w, c.out_dims(), op.groups, win);
  const Elements<S> data(c, 0), weights(c, 1);
  Operands<S> o{data.data(), weights.data(), 0, 0, {}};
  set_zero_points(c, 3, w[0], o);
  auto y = convolve(g, o);
  if (c.has(2)) {
    std::vector<T> bias;
    if constexpr (std::is_same_v<T, double>)
      bias = c.doubles(2);
    else
      for (auto b : c.ints(2)) bias.push_back(static_cast<T>(b));
    add_bias(y, bias, g.out_size);
  }
  if constexpr (std::is_same_v<T, double>)
    if (is_float(c.out_element(0))) return c.store(0, y);
  Ints values(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) values[i] = static_cast<std::int64_t>(y[i]);
  c.store(0, values);
}

template <class S>
std::vector<double> transposed_as(EvalContext& c, const Geometry& g) {
  const Elements<S> data(c, 0), weights(c, 1);
  Operands<S> o{data.data(), weights.data(), 0, 0, {}};
  set_zero_points(c, 4, c.out_dims()[1], o);
  return convolve_transposed(g, o);
}

}  // namespace

void Convolution::evaluate(EvalContext& c) const {
  const auto x = c.in(0).element_type(), w = c.in(1).element_type();
  if (x == ElementType::f64) return evaluate_as<double>(*this, c);
  // Integers of up to 16 bits are exact in f32, and sums of their products in f64.
  if (is_float(x) || (bits_of(x) <= 16 && bits_of(w) <= 16)) return evaluate_as<float>(*this, c);
  evaluate_as<std::int64_t>(*this, c);
}

void ConvolutionBackpropData::evaluate(EvalContext& c) const {
  const auto &x = c.dims(0), &w = c.dims(1), &y = c.out_dims();
  const Shape in = Shape::of(x), out = Shape::of(y);
  const auto wanted = c.has(3) ? std::span(out.dims()).subspan(2) : std::span<const Dim>();
  const auto win =
      resolve_transposed(*this, std::span(in.dims()).subspan(2), std::span(w).subspan(2), wanted);
  const auto g = geometry(x, w, y, groups, win);
  auto values =
      c.in(0).element_type() == ElementType::f64 ? transposed_as<double>(c, g) : transposed_as<float>(c, g);
  if (c.has(2)) add_bias(values, c.doubles(2), g.out_size);
  if (is_float(c.out_element(0))) return c.store(0, values);
  Ints sums_of_integers(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) sums_of_integers[i] = static_cast<std::int64_t>(values[i]);
  c.store(0, sums_of_integers);
}

void BinaryConvolution::evaluate(EvalContext& c) const {
  const auto &x = c.dims(0), &w = c.dims(1);
  const Shape shape = Shape::of(x);
  const auto win = resolve(*this, std::span(shape.dims()).subspan(2), std::span(w).subspan(2));
  auto data = c.floats(0), weights = c.floats(1);
  for (auto* list : {&data, &weights})
    for (auto& v : *list) v = v > 0 ? 1.0f : -1.0f;
  const auto g = geometry(x, w, c.out_dims(), groups, win);
  c.store(0, convolve(g, Operands<float>{data.data(), weights.data(), static_cast<float>(pad_value), 0, {}}));
}

}  // namespace lamina
