/// Windows and Fourier transforms.
#include <cmath>
#include <numbers>

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

/// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N) for n in 0 .. size - 1; N is the size, or one less when not
/// periodic.
Values window(Call& c, double a0, double a1, double a2) {
  const auto type = c.element_attribute("output_datatype", ElementType::f32);
  const auto size = c.to_scalar(c.convert(c.in(0), ElementType::i64));
  const auto n = c.convert(c.add(Range{ElementType::i64}, {c.int_constant(0), size, c.int_constant(1)}),
                           ElementType::f64);
  auto length = c.convert(size, ElementType::f64);
  if (!c.flag("periodic", true)) length = subtract(c, length, c.number_like(1, length));
  const auto turn = divide(c, multiply(c, n, c.number_like(2 * std::numbers::pi, n)), length);
  const auto first = multiply(c, c.add(Cos{}, {turn}), c.number_like(a1, turn));
  auto y = subtract(c, c.number_like(a0, turn), first);
  if (a2 != 0) {
    const auto twice = c.add(Cos{}, {multiply(c, turn, c.number_like(2, turn))});
    y = add(c, y, multiply(c, twice, c.number_like(a2, turn)));
  }
  return {c.convert(y, type)};
}

Values convert_hann(Call& c) { return window(c, 0.5, 0.5, 0); }
Values convert_hamming(Call& c) { return window(c, 25.0 / 46, 21.0 / 46, 0); }
Values convert_blackman(Call& c) { return window(c, 0.42, 0.5, 0.08); }

/// The last axis holds one number (real) or two (complex). Opset 17 has the axis as an attribute.
Values convert_dft(Call& c) {
  const auto rank = c.known_rank(c.in(0));
  if (rank < 2) c.fail("input has rank {}, wanted 2 or more", rank);
  auto axis = c.version() < 20 ? c.i("axis", 1) : -2;
  if (c.version() >= 20 && c.has(2)) {
    const auto given = c.known_ints(c.in(2));
    if (!given || given->size() != 1) c.unsupported("an axis that is computed");
    axis = (*given)[0];
  }
  const auto at = static_cast<std::int64_t>(c.axis(axis, rank));
  if (at + 1 == static_cast<std::int64_t>(rank))
    c.fail("axis {} is the one of real and imaginary parts", axis);
  const bool inverse = c.flag("inverse"), onesided = c.flag("onesided");
  const auto& last = c.type(c.in(0)).shape[rank - 1];
  if (!last.known()) c.unsupported("an unknown number of parts");
  if (inverse && onesided) {  // of a spectrum of real numbers, which come out
    if (!last.is(2)) c.fail("input is {}, wanted real and imaginary parts", to_string(c.shape(c.in(0))));
    Values spectrum{c.in(0), c.ints_constant({at})};
    if (c.has(1)) spectrum.push_back(c.to_vector(c.in(1)));
    return {c.unsqueeze(c.add(IRDFT{}, std::move(spectrum)), {-1})};
  }
  auto x = c.in(0);
  if (last.is(1)) x = c.concat({x, multiply(c, x, c.number_like(0, x))}, -1);
  Values inputs{x, c.ints_constant({at})};
  if (c.has(1)) inputs.push_back(c.to_vector(c.in(1)));
  const auto y = inverse ? c.add(IDFT{}, std::move(inputs)) : c.add(DFT{}, std::move(inputs));
  if (!onesided) return {y};
  const auto half = add(c, divide(c, size_of(c, y, at), c.int_constant(2)), c.int_constant(1));
  return {c.add(Slice{},
                {y, c.ints_constant({0}), c.to_vector(half), c.ints_constant({1}), c.ints_constant({at})})};
}

constexpr std::int64_t kLongestFrame = 4096;

/// The Fourier transform of one frame as weights of a convolution [2 * bins, parts, size]: real and imaginary
/// part of each bin, of real (1 part) or complex (2 parts) samples.
Tensor fourier_weights(std::int64_t size, std::int64_t bins, std::int64_t parts) {
  std::vector<double> cosines, sines;
  for (std::int64_t n = 0; n < size; ++n) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(size);
    const bool quarter = 4 * n % size == 0;  // exact there
    cosines.push_back(quarter ? std::round(std::cos(angle)) : std::cos(angle));
    sines.push_back(quarter ? std::round(std::sin(angle)) : std::sin(angle));
  }
  std::vector<float> w;
  w.reserve(static_cast<std::size_t>(2 * bins * parts * size));
  for (std::int64_t row = 0; row < 2 * bins; ++row)
    for (std::int64_t part = 0; part < parts; ++part)
      for (std::int64_t n = 0; n < size; ++n) {
        const auto at = static_cast<std::size_t>(row / 2 * n % size);
        const double c = cosines[at], s = sines[at];
        const double real = part == 0 ? c : s, imaginary = part == 0 ? -s : c;
        w.push_back(static_cast<float>(row % 2 == 0 ? real : imaginary));
      }
  return Tensor::of<float>({2 * bins, parts, size}, w);
}

std::int64_t known_size(const Call& c, std::size_t input, const char* what) {
  const auto values = c.known_ints(c.in(input));
  if (!values) c.unsupported("a {} that is computed", what);
  if (values->size() != 1 || (*values)[0] < 1)
    c.fail("{} is {}, wanted one number of 1 or more", what, fmt::join(*values, ","));
  return (*values)[0];
}

/// Samples of a frame: given, or the window's.
std::int64_t frame_length(const Call& c) {
  std::optional<std::int64_t> length;
  if (c.has(3)) length = known_size(c, 3, "frame_length");
  if (!c.has(2)) {
    if (!length) c.fail("has neither window nor frame_length");
    return *length;
  }
  if (c.known_rank(c.in(2)) != 1) c.fail("the window is {}, wanted rank 1", to_string(c.type(c.in(2)).shape));
  const auto& window = c.type(c.in(2)).shape[0];
  if (!window.known() && !length) c.unsupported("a window of unknown size");
  if (length && !window.fits(Dim(*length)))
    c.fail("the window has {} values, frame_length is {}", to_string(window), *length);
  return length ? *length : window.size();
}

/// A convolution of the signal [B, parts, L] with windowed waves. The signal is [B, L], or [B, L, parts].
Values convert_stft(Call& c) {
  auto x = c.in(0);
  const auto type = c.known_element(x);
  const auto rank = c.known_rank(x);
  if (rank != 2 && rank != 3) c.fail("the signal has rank {}, wanted 2 or 3", rank);
  if (rank == 3 && !c.type(x).shape[2].known()) c.unsupported("an unknown number of parts");
  const auto parts = rank == 2 ? 1 : c.type(x).shape[2].size();
  if (parts != 1 && parts != 2) c.fail("a sample has {} parts, wanted 1 or 2", parts);
  const auto step = known_size(c, 1, "frame_step"), size = frame_length(c);
  if (size < 1 || size > kLongestFrame)
    c.unsupported("frames of {} samples, more than {}", size, kLongestFrame);
  if (const auto& length = c.type(x).shape[1]; length.known() && length.size() < size)
    c.fail("the signal has {} samples, a frame {}", length.size(), size);
  const bool onesided = c.flag("onesided", true);
  if (onesided && parts == 2) c.fail("wants one side of a complex signal, which has two");
  const auto bins = onesided ? size / 2 + 1 : size;

  spend(c, 2 * bins * parts * size);
  auto waves = c.constant(fourier_weights(size, bins, parts));
  if (c.has(2)) waves = folded(c, multiply(c, waves, c.convert(c.in(2), ElementType::f32)));
  x = c.convert(x, ElementType::f32);
  x = rank == 2 ? c.unsqueeze(x, {1}) : c.transpose(x, {0, 2, 1});
  Convolution op;
  op.strides = {step};
  op.dilations = {1};
  op.pads_begin = op.pads_end = {0};
  const auto y = c.transpose(c.add(op, {x, waves}), {0, 2, 1});
  return {c.convert(c.add(Reshape{true}, {y, c.ints_constant({0, 0, bins, 2})}), type)};
}

double scalar(const Call& c, std::size_t input, const char* what) {
  const auto v = c.known_number(c.in(input));
  if (!v) c.unsupported("a {} that is computed", what);
  if (!std::isfinite(*v)) c.fail("{} is {}, wanted a finite number", what, *v);
  return *v;
}

/// The bins in which triangles begin, peak and end, at equal steps of the mel scale.
std::vector<std::int64_t> mel_bins(const Call& c, std::int64_t mels, std::int64_t size, double rate,
                                   double low, double high) {
  const auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const auto step = (to_mel(high) - to_mel(low)) / static_cast<double>(mels + 2);
  const auto highest = static_cast<double>(size / 2);  // NOLINT(bugprone-integer-division): a number of a bin
  std::vector<std::int64_t> bins;
  for (std::int64_t i = 0; i < mels + 2; ++i) {
    const auto hertz = 700 * (std::pow(10.0, (static_cast<double>(i) * step + to_mel(low)) / 2595) - 1);
    const auto bin = std::floor(static_cast<double>(size + 1) * hertz / rate);
    if (!(bin >= 0 && bin <= highest))
      c.fail("band {} is at {} Hz, not within dft_length / 2 at this rate", i, hertz);
    bins.push_back(static_cast<std::int64_t>(bin));
  }
  return bins;
}

/// A constant [dft_length / 2 + 1, num_mel_bins].
Values convert_mel_weight_matrix(Call& c) {
  const auto type = c.element_attribute("output_datatype", ElementType::f32);
  const auto mels = known_size(c, 0, "num_mel_bins"), size = known_size(c, 1, "dft_length"),
             rate = known_size(c, 2, "sample_rate");
  const double low = scalar(c, 3, "lower_edge_hertz"), high = scalar(c, 4, "upper_edge_hertz");
  if (mels > 1 << 12 || size > 1 << 16) c.unsupported("{} bands of a transform of {}", mels, size);
  if (!(low >= 0 && high > low)) c.fail("the edges are {} and {} Hz, wanted 0 <= lower < upper", low, high);
  spend(c, (size / 2 + 1) * mels);
  const auto bins = mel_bins(c, mels, size, static_cast<double>(rate), low, high);
  std::vector<double> out(static_cast<std::size_t>((size / 2 + 1) * mels));
  for (std::int64_t m = 0; m < mels; ++m) {
    const auto i = static_cast<std::size_t>(m);
    const auto begin = bins[i], peak = bins[i + 1], end = bins[i + 2];
    const auto at = [&](std::int64_t bin) -> double& {
      return out[static_cast<std::size_t>(bin * mels + m)];
    };
    if (peak == begin) at(peak) = 1;
    for (auto b = begin; b <= peak && peak != begin; ++b)
      at(b) = static_cast<double>(b - begin) / static_cast<double>(peak - begin);
    for (auto b = peak; b < end; ++b) at(b) = static_cast<double>(end - b) / static_cast<double>(end - peak);
  }
  return {c.constant(from_doubles(type, {size / 2 + 1, mels}, out))};
}

}  // namespace

void register_signal(ConverterTable& t) {
  t.add("BlackmanWindow", convert_blackman);
  t.add("DFT", convert_dft);
  t.add("HammingWindow", convert_hamming);
  t.add("HannWindow", convert_hann);
  t.add("MelWeightMatrix", convert_mel_weight_matrix);
  t.add("STFT", convert_stft);
}

}  // namespace lamina::onnx
