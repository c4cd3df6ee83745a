#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "base/cancellation.h"
#include "ops/generation.h"
#include "ops/require.h"
#include "ops/walk.h"

namespace lamina {

namespace {

using Complex = std::complex<double>;

/// exp(sign * 2 pi i k / n) for k in [0, n).
std::vector<Complex> roots(std::size_t n, double sign) {
  std::vector<Complex> out(n);
  for (std::size_t k = 0; k < n; ++k)
    out[k] = std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
  return out;
}

constexpr std::size_t kPiece = std::size_t{1} << 16;  // of a sum, between stop points

/// Splits off factors of 2, then follows the definition.
std::vector<Complex> transformed(const std::vector<Complex>& x, const std::vector<Complex>& root,
                                 std::size_t stride, StopPoints& points) {
  const auto n = x.size();
  std::vector<Complex> out(n);
  if (n % 2 == 0 && n > 2) {
    std::vector<Complex> even(n / 2), odd(n / 2);
    for (std::size_t i = 0; i < n / 2; ++i) {
      even[i] = x[2 * i];
      odd[i] = x[2 * i + 1];
    }
    even = transformed(even, root, 2 * stride, points);
    odd = transformed(odd, root, 2 * stride, points);
    for (std::size_t k = 0; k < n / 2; ++k) {
      const auto turned = odd[k] * root[k * stride];
      out[k] = even[k] + turned;
      out[k + n / 2] = even[k] - turned;
    }
    return out;
  }
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t first = 0; first < n; first += kPiece) {
      const auto end = std::min(n, first + kPiece);
      for (auto i = first; i < end; ++i) out[k] += x[i] * root[i * k % n * stride];
      points(static_cast<std::int64_t>(end - first));
    }
  return out;
}

struct Field {
  Dims dims;
  std::vector<Complex> values;
};

/// Cuts or pads with zeros along one axis.
Field resized(const Field& x, std::size_t axis, std::int64_t size) {
  if (x.dims[axis] == size) return x;
  Field out{x.dims, {}};
  out.dims[axis] = size;
  out.values.resize(static_cast<std::size_t>(volume(out.dims)));
  const auto inner = volume(x.dims, axis + 1, x.dims.size()), outer = volume(x.dims, 0, axis);
  const auto count = std::min(size, x.dims[axis]) * inner;
  for (std::int64_t o = 0; o < outer; ++o)
    std::copy_n(x.values.begin() + o * x.dims[axis] * inner, count, out.values.begin() + o * size * inner);
  return out;
}

void transform_axis(Field& x, std::size_t axis, double sign) {
  const auto size = static_cast<std::size_t>(x.dims[axis]);
  const auto inner = static_cast<std::size_t>(volume(x.dims, axis + 1, x.dims.size()));
  if (x.values.empty()) return;
  const auto root = roots(size, sign);
  std::vector<Complex> row(size);
  StopPoints points;
  for (std::size_t first = 0; first < x.values.size(); first += size * inner)
    for (std::size_t i = 0; i < inner; ++i) {
      for (std::size_t k = 0; k < size; ++k) row[k] = x.values[first + k * inner + i];
      const auto turned = transformed(row, root, 1, points);
      points(static_cast<std::int64_t>(size));
      for (std::size_t k = 0; k < size; ++k) x.values[first + k * inner + i] = turned[k];
    }
}

Field read_complex(EvalContext& c) {
  Field out{{c.dims(0).begin(), c.dims(0).end() - 1}, {}};
  const auto numbers = c.doubles(0);
  out.values.resize(numbers.size() / 2);
  for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] = {numbers[2 * i], numbers[2 * i + 1]};
  return out;
}

Field read_real(EvalContext& c) {
  const auto numbers = c.doubles(0);
  return {c.dims(0), {numbers.begin(), numbers.end()}};
}

void store_complex(EvalContext& c, const Field& x) {
  std::vector<double> out;
  out.reserve(x.values.size() * 2);
  for (const auto& v : x.values) {
    out.push_back(v.real());
    out.push_back(v.imag());
  }
  c.store(0, out);
}

/// The axes and sizes that are known, and the shape after cutting and padding.
struct Plan {
  std::optional<std::vector<std::size_t>> axes;
  Ints sizes;  ///< -1 keeps; empty when not known
  bool sizes_known = true;
};

Plan plan_of(const InferContext& c, std::optional<std::size_t> rank) {
  Plan p;
  require_integer(c, 1, "axes");
  require_rank(c, 1, 1, "axes");
  const auto axes = c.ints(1);
  if (axes && rank) {
    p.axes = distinct_axes(*axes, *rank, "a transform's axis");
    c.require(!axes->empty(), "axes are empty, wanted at least one");
  }
  if (c.has(2)) {
    require_integer(c, 2, "signal size");
    require_rank(c, 2, 1, "signal size");
    const auto sizes = c.ints(2);
    p.sizes_known = sizes.has_value();
    if (sizes) p.sizes = *sizes;
    if (axes && sizes)
      c.require(axes->size() == sizes->size(), "{} signal sizes for {} axes", sizes->size(), axes->size());
    for (const auto s : p.sizes)
      c.require(s == -1 || s >= 1, "signal size is {}, wanted -1 or more than 0", s);
  }
  return p;
}

std::int64_t size_of(const Plan& p, std::size_t i, std::int64_t otherwise) {
  return p.sizes.empty() || p.sizes[i] == -1 ? otherwise : p.sizes[i];
}

Dim dim_of(const Plan& p, std::size_t i, const Dim& otherwise) {
  if (!p.sizes_known) return Dim();
  return p.sizes.empty() || p.sizes[i] == -1 ? otherwise : Dim(p.sizes[i]);
}

void require_complex(const InferContext& c) {
  const auto& x = c.shape(0);
  if (!x.ranked()) return;
  c.require(x.rank() >= 2 && x[x.rank() - 1].fits(2),
            "x has shape {}, wanted pairs of numbers on the last axis", to_string(x));
}

void infer_complex(InferContext& c) {
  require_complex(c);
  const auto& x = c.shape(0);
  const auto p = plan_of(c, x.ranked() ? std::optional(x.rank() - 1) : std::nullopt);
  if (!x.ranked() || !p.axes) return c.set(0, c.element(0), x.ranked() ? Shape::of_rank(x.rank()) : Shape());
  auto out = x;
  out[x.rank() - 1] = 2;
  for (std::size_t i = 0; i < p.axes->size(); ++i) out[(*p.axes)[i]] = dim_of(p, i, x[(*p.axes)[i]]);
  c.set(0, c.element(0), out);
}

Plan evaluated_plan(EvalContext& c, std::size_t rank) {
  Plan p;
  p.axes = distinct_axes(c.ints(1), rank, "a transform's axis");
  if (c.has(2)) p.sizes = c.ints(2);
  return p;
}

void evaluate_complex(EvalContext& c, double sign, bool divide) {
  if (c.in(0).size() == 0) return;  // zeros, whatever the sizes on the way there
  auto x = read_complex(c);
  const auto p = evaluated_plan(c, x.dims.size());
  double count = 1;
  for (std::size_t i = 0; i < p.axes->size(); ++i) {
    const auto axis = (*p.axes)[i];
    x = resized(x, axis, size_of(p, i, x.dims[axis]));
    transform_axis(x, axis, sign);
    count *= static_cast<double>(x.dims[axis]);
  }
  if (divide)
    for (auto& v : x.values) v /= count;
  store_complex(c, x);
}

}  // namespace

void DFT::infer(InferContext& c) const { infer_complex(c); }
void DFT::evaluate(EvalContext& c) const { evaluate_complex(c, -1, false); }
void IDFT::infer(InferContext& c) const { infer_complex(c); }
void IDFT::evaluate(EvalContext& c) const { evaluate_complex(c, 1, true); }

void RDFT::infer(InferContext& c) const {
  const auto& x = c.shape(0);
  if (x.ranked()) c.require(x.rank() >= 1, "x is a scalar, wanted at least one axis");
  const auto p = plan_of(c, x.ranked() ? std::optional(x.rank()) : std::nullopt);
  if (!x.ranked() || !p.axes)
    return c.set(0, c.element(0), x.ranked() ? Shape::of_rank(x.rank() + 1) : Shape());
  auto out = x.dims();
  for (std::size_t i = 0; i < p.axes->size(); ++i) out[(*p.axes)[i]] = dim_of(p, i, x[(*p.axes)[i]]);
  auto& last = out[p.axes->back()];
  last = floor_div(last, 2) + Dim(1);
  out.emplace_back(2);
  c.set(0, c.element(0), std::move(out));
}

void RDFT::evaluate(EvalContext& c) const {
  if (c.in(0).size() == 0) return;
  auto x = read_real(c);
  const auto p = evaluated_plan(c, x.dims.size());
  for (std::size_t i = p.axes->size(); i-- > 0;) {
    const auto axis = (*p.axes)[i];
    x = resized(x, axis, size_of(p, i, x.dims[axis]));
    transform_axis(x, axis, -1);
    if (i + 1 == p.axes->size()) x = resized(x, axis, x.dims[axis] / 2 + 1);
  }
  store_complex(c, x);
}

void IRDFT::infer(InferContext& c) const {
  require_complex(c);
  const auto& x = c.shape(0);
  const auto p = plan_of(c, x.ranked() ? std::optional(x.rank() - 1) : std::nullopt);
  if (!x.ranked() || !p.axes)
    return c.set(0, c.element(0), x.ranked() ? Shape::of_rank(x.rank() - 1) : Shape());
  std::vector<Dim> out(x.dims().begin(), x.dims().end() - 1);
  for (std::size_t i = 0; i < p.axes->size(); ++i) {
    const auto axis = (*p.axes)[i];
    const bool last = i + 1 == p.axes->size();
    c.require(!last || x[axis].high() >= 1, "x {} has nothing on axis {}", to_string(x), axis);
    out[axis] = dim_of(p, i, last ? (x[axis] - Dim(1)) * Dim(2) : x[axis]);
  }
  c.set(0, c.element(0), std::move(out));
}

void IRDFT::evaluate(EvalContext& c) const {
  if (c.in(0).size() == 0) return;
  auto x = read_complex(c);
  const auto p = evaluated_plan(c, x.dims.size());
  double count = 1;
  for (std::size_t i = 0; i < p.axes->size(); ++i) {
    const auto axis = (*p.axes)[i];
    const bool last = i + 1 == p.axes->size();
    const auto size = size_of(p, i, last ? 2 * (x.dims[axis] - 1) : x.dims[axis]);
    count *= static_cast<double>(size);
    if (!last) {
      x = resized(x, axis, size);
      transform_axis(x, axis, 1);
      continue;
    }
    x = resized(x, axis, size / 2 + 1);  // the other half is the conjugate
    const auto half = x;
    x = resized(x, axis, size);
    const auto inner = volume(x.dims, axis + 1, x.dims.size()), outer = volume(x.dims, 0, axis);
    for (std::int64_t o = 0; o < (x.values.empty() ? 0 : outer); ++o)
      for (std::int64_t k = size / 2 + 1; k < size; ++k)
        for (std::int64_t n = 0; n < inner; ++n)
          x.values[static_cast<std::size_t>((o * size + k) * inner + n)] =
              std::conj(half.values[static_cast<std::size_t>((o * half.dims[axis] + size - k) * inner + n)]);
    transform_axis(x, axis, 1);
  }
  std::vector<double> out;
  for (const auto& v : x.values) out.push_back(v.real() / count);
  c.store(0, out);
}

void STFT::infer(InferContext& c) const {
  const auto &signal = c.shape(0), &window = c.shape(1);
  c.require(!signal.ranked() || signal.rank() == 1 || signal.rank() == 2,
            "signal has shape {}, wanted rank 1 or 2", to_string(signal));
  require_rank(c, 1, 1, "window");
  const auto size = known_int(c, 2, "frame size"), step = known_int(c, 3, "frame step");
  c.require(!size || *size >= 1, "frame size is {}, wanted at least 1", size.value_or(0));
  c.require(!step || *step >= 1, "frame step is {}, wanted at least 1", step.value_or(0));
  if (size && window.ranked())
    c.require(window[0].low() <= *size, "window {} is longer than the frame of {}", to_string(window), *size);
  if (!signal.ranked()) return c.set(0, c.element(0), Shape());
  const auto& length = signal[signal.rank() - 1];
  if (size)
    c.require(length.high() >= *size, "signal {} is shorter than the frame of {}", to_string(signal), *size);
  const Dim frames =
      size && step && length.low() >= *size ? floor_div(length - Dim(*size), *step) + Dim(1) : Dim();
  const Dim bins = size ? Dim(*size / 2 + 1) : Dim();
  std::vector<Dim> out(signal.dims().begin(), signal.dims().end() - 1);
  out.push_back(transpose_frames ? bins : frames);
  out.push_back(transpose_frames ? frames : bins);
  out.emplace_back(2);
  c.set(0, c.element(0), std::move(out));
}

void STFT::evaluate(EvalContext& c) const {
  const auto& dims = c.dims(0);
  const auto length = static_cast<std::size_t>(dims.back()), size = static_cast<std::size_t>(c.ints(2).at(0));
  const auto step = static_cast<std::size_t>(c.ints(3).at(0));
  const auto signal = c.doubles(0), short_window = c.doubles(1);
  std::vector<double> window(size, 0.0);
  std::copy(short_window.begin(), short_window.end(),
            window.begin() + static_cast<std::ptrdiff_t>((size - short_window.size()) / 2));
  const auto frames = (length - size) / step + 1, bins = size / 2 + 1, batch = signal.size() / length;
  const auto root = roots(size, -1);
  std::vector<double> out(c.out().size());
  std::vector<Complex> row(size);
  StopPoints points;
  for (std::size_t n = 0; n < batch; ++n)
    for (std::size_t f = 0; f < frames; ++f) {
      for (std::size_t i = 0; i < size; ++i) row[i] = signal[n * length + f * step + i] * window[i];
      const auto spectrum = transformed(row, root, 1, points);
      points(static_cast<std::int64_t>(size));
      for (std::size_t k = 0; k < bins; ++k) {
        const auto to = 2 * (n * frames * bins + (transpose_frames ? k * frames + f : f * bins + k));
        out[to] = spectrum[k].real();
        out[to + 1] = spectrum[k].imag();
      }
    }
  c.store(0, out);
}

}  // namespace lamina
