#include "tool/image_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/tensor_numbers.h"
#include "base/words.h"
#include "tool/common.h"
#include "tool/named_lists.h"

namespace lamina::tool {
namespace {

constexpr auto kNotFound = std::string::npos;
constexpr std::uint8_t kBars = 114;  ///< of letterboxes: a middle grey, as detectors are trained with

bool is_layout(const std::string& text) {
  return text.find('H') != kNotFound && text.find('W') != kNotFound &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return std::string("NCHW").find(c) != kNotFound && std::count(text.begin(), text.end(), c) == 1;
         });
}

/// What --layout says of that input, by name or else of all, in capitals; "" when nothing.
std::string given_layout(const Port& port, const ImageOptions& o) {
  std::optional<std::string> named, of_all;
  for (const auto& text : o.layout)
    for (auto& [name, letters] : named_lists("--layout", text)) {
      if (!name.empty() && name != port.name) continue;
      letters = upper_case(letters);
      if (letters != "AUTO" && !is_layout(letters))
        throw UsageError(fmt::format(
            "--layout {}: wanted H, W and perhaps N and C in the tensor's order, such as NCHW or NHWC",
            text));
      auto& found = name.empty() ? of_all : named;
      if (found) throw UsageError(fmt::format("--layout: two layouts for input \"{}\"", port.name));
      found = letters == "AUTO" ? "" : letters;
    }
  return named ? *named : of_all.value_or("");
}

bool channels(std::int64_t d) { return d == 3 || d == 1; }

/// From the shape: the dimension of 3 or 1 is the channels.
std::string guessed_layout(const Dims& d) {
  if (d.size() == 4) return channels(d[3]) && !channels(d[1]) ? "NHWC" : "NCHW";
  if (d.size() == 3 && (channels(d[0]) || channels(d[2])))
    return channels(d[2]) && !channels(d[0]) ? "HWC" : "CHW";
  return d.size() == 2 ? "HW" : "";
}

/// The letters of the tensor's dimensions: "NHWC" and the like; N and C may be missing.
std::string layout_of(const Port& port, const Dims& dims, const ImageOptions& options) {
  const auto given = given_layout(port, options);
  const auto layout = given.empty() && port.ranked ? guessed_layout(dims) : given;
  if (layout.empty())
    fail(ErrorCode::bad_input, "input \"{}\" is {}: its layout for an image is not clear: give --layout",
         port.name, to_string(port));
  if (layout.size() != dims.size() && port.ranked)
    fail(ErrorCode::bad_input, "--layout {}: input \"{}\" has {} dimensions ({})", layout, port.name,
         dims.size(), to_string(port));
  return layout;
}

struct ImageSize {
  std::int64_t n = 1, c = 1, h = 1, w = 1;
};

/// A size of the tensor; `without` when the layout has no such letter.
std::int64_t dimension(const std::string& layout, const Dims& dims, char letter, std::int64_t without) {
  const auto at = layout.find(letter);
  return at == kNotFound ? without : dims[at];
}

/// The tensor that is wanted.
struct Target {
  std::string layout;
  ImageSize size;
  Dims shape;
  std::size_t n_step, c_step, h_step, w_step;  ///< in elements; 0 where the layout has no such letter

  Target(std::string letters, const ImageSize& s) : layout(std::move(letters)), size(s) {
    for (const char c : layout) shape.push_back(c == 'N' ? s.n : c == 'C' ? s.c : c == 'H' ? s.h : s.w);
    n_step = step('N'), c_step = step('C'), h_step = step('H'), w_step = step('W');
  }

 private:
  std::size_t step(char letter) const {
    const auto at = layout.find(letter);
    if (at == kNotFound) return 0;
    return element_count(Dims(shape.begin() + static_cast<std::ptrdiff_t>(at) + 1, shape.end()));
  }
};

std::int64_t in_proportion(std::int64_t wanted, std::int64_t of, std::int64_t other) {
  return std::max<std::int64_t>(1, (wanted * other + of / 2) / of);
}

/// Unknown sizes are the first image's.
ImageSize size_of(const std::string& layout, const Dims& dims, const Port& port,
                  const std::vector<Image>& images) {
  const auto known = [&](char letter) { return dimension(layout, dims, letter, 1); };
  ImageSize s{known('N'), known('C'), known('H'), known('W')};
  const std::int64_t own_h = images[0].height, own_w = images[0].width;
  if (s.n < 0) s.n = static_cast<std::int64_t>(images.size());
  if (s.c < 0) s.c = 3;
  if (s.h < 0) s.h = s.w < 0 ? own_h : in_proportion(s.w, own_w, own_h);
  if (s.w < 0) s.w = known('H') < 0 ? own_w : in_proportion(s.h, own_h, own_w);
  if ((s.c != 3 && s.c != 1) || s.h < 1 || s.w < 1 || s.h > 65535 || s.w > 65535 || s.n < 1)
    fail(ErrorCode::bad_input,
         "input \"{}\": an image for {} in layout {}, wanted 1 or 3 channels and sizes to 65535", port.name,
         to_string(port), layout);
  if (s.n < static_cast<std::int64_t>(images.size()))
    fail(ErrorCode::bad_input, "input \"{}\": {} images for a batch of {}", port.name, images.size(), s.n);
  return s;
}

/// In its proportions, in the middle of grey bars, if any are left.
Image letterboxed(const Image& image, int width, int height, std::string& note) {
  const double factor =
      std::min(static_cast<double>(width) / image.width, static_cast<double>(height) / image.height);
  const int w = std::clamp(static_cast<int>(std::lround(image.width * factor)), 1, width);
  const int h = std::clamp(static_cast<int>(std::lround(image.height * factor)), 1, height);
  const auto inner = resized(image, w, h);
  Image out{width, height, {}, image.grey, image.notes};
  out.rgb.assign(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3, kBars);
  const int left = (width - w) / 2, top = (height - h) / 2;
  for (int y = 0; y < h; ++y)
    std::copy_n(inner.rgb.begin() + std::ptrdiff_t{3} * y * w, std::ptrdiff_t{3} * w,
                out.rgb.begin() + std::ptrdiff_t{3} * (std::ptrdiff_t{y + top} * width + left));
  note = fmt::format("resized to {}x{}", w, h);
  if (w < width || h < height)
    note += fmt::format(" at {},{} of {}x{}, grey bars around", left, top, width, height);
  return out;
}

Image fitted(const Image& image, const ImageSize& s, const std::string& fit, std::string& note) {
  const int w = static_cast<int>(s.w), h = static_cast<int>(s.h);
  if (image.width == w && image.height == h) return image;
  if (fit == "letterbox") return letterboxed(image, w, h, note);
  const bool distorts = in_proportion(s.w, image.width, image.height) != s.h &&
                        in_proportion(s.h, image.height, image.width) != s.w;
  note = fmt::format("{} to {}x{}", distorts ? "stretched" : "resized", w, h);
  return resized(image, w, h);
}

double channel_value(const std::vector<double>& values, std::size_t c, double fallback) {
  if (values.empty()) return fallback;
  return values.size() == 1 ? values[0] : values[c];
}

void check_values(const ImageOptions& o, const Port& port, std::int64_t count) {
  for (const auto& [option, values] : {std::pair{"--mean", &o.mean}, {"--scale", &o.scale}}) {
    if (values->size() > 1 && values->size() != static_cast<std::size_t>(count))
      throw UsageError(fmt::format("{}: {} values for the {} channel{} of input \"{}\"", option,
                                   values->size(), count, count == 1 ? "" : "s", port.name));
    for (const auto v : *values)
      if (!std::isfinite(v) || (values == &o.scale && v == 0))
        throw UsageError(fmt::format("{} {}: wanted a finite number{}", option, v,
                                     values == &o.scale ? " that is not 0" : ""));
  }
}

/// The least and the largest number that the type holds.
struct Bounds {
  double least, most;
};

/// Bounds of a float with so many bits after the point, whose exponents end at `exponent`.
Bounds float_bounds(int exponent, int bits) {
  const double most = std::ldexp(2 - std::ldexp(1, -bits), exponent);
  return {-most, most};
}

/// Ends that a double cannot say are the nearest ones within.
Bounds integer_bounds(int bits, bool with_sign) {
  const double end = std::ldexp(1, with_sign ? bits - 1 : bits);
  return {with_sign ? -end : 0, bits == 64 ? std::nextafter(end, 0) : end - 1};
}

Bounds bounds_of(const Port& port) {
  switch (port.type) {
    case ElementType::f16:
      return float_bounds(15, 10);
    case ElementType::bf16:
      return float_bounds(127, 7);
    case ElementType::f32:
      return float_bounds(127, 23);
    case ElementType::f64:
      return float_bounds(1023, 52);
    default:
      if (is_integer(port.type) && bits_of(port.type) >= 8)
        return integer_bounds(bits_of(port.type), is_signed(port.type));
      fail(ErrorCode::bad_input,
           "input \"{}\": an image for type {}, wanted floats or integers of 8 bits or more", port.name,
           name_of(port.type));
  }
}

/// The values of an image that has the target's size, from values[at] on. How many are beyond the bounds of
/// the type, and were cut to them.
std::size_t fill(std::vector<double>& values, std::size_t at, const Image& image, const Target& target,
                 const ImageOptions& o, const Port& port) {
  const auto bounds = bounds_of(port);
  const bool whole = !is_float(port.type), bgr = o.color == "bgr";
  const auto channels = static_cast<std::size_t>(target.size.c);
  std::size_t cut = 0;
  const auto* rgb = image.rgb.data();
  for (std::size_t y = 0; y < static_cast<std::size_t>(target.size.h); ++y)
    for (std::size_t x = 0; x < static_cast<std::size_t>(target.size.w); ++x, rgb += 3)
      for (std::size_t c = 0; c < channels; ++c) {
        const double pixel = channels == 3 ? rgb[bgr ? 2 - c : c]
                             : image.grey  ? rgb[0]
                                           : 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
        double v = (pixel - channel_value(o.mean, c, 0)) / channel_value(o.scale, c, 1);
        if (whole) v = std::nearbyint(v);
        cut += v < bounds.least || v > bounds.most;
        values[at + c * target.c_step + y * target.h_step + x * target.w_step] =
            std::clamp(v, bounds.least, bounds.most);
      }
  return cut;
}

std::string values_text(const ImageOptions& o) {
  if (o.mean.empty() && o.scale.empty()) return "values 0 to 255";
  std::string out = o.mean.empty() ? "pixel" : fmt::format("pixel - {}", fmt::join(o.mean, ","));
  if (o.scale.empty()) return out;
  if (!o.mean.empty()) out = "(" + out + ")";
  return fmt::format("{} / {}", out, fmt::join(o.scale, ","));
}

/// A sentence about everything that was done to an image.
std::string sentence(const Port& port, const std::string& path, const Image& image, const Target& target,
                     const ImageOptions& o, const std::string& resize, std::size_t cut) {
  auto said = image.notes;
  said.push_back(resize.empty() ? "its own size" : resize);
  if (image.grey != (target.size.c == 1))
    said.emplace_back(image.grey ? "grey to 3 equal channels" : "colour to grey");
  if (o.color == "bgr" && target.size.c == 3) said.emplace_back("RGB to BGR");
  said.push_back(values_text(o));
  if (cut > 0) said.push_back(fmt::format("{} values clipped to the range of {}", cut, name_of(port.type)));
  return fmt::format("input \"{}\": {}, {}x{}: {}; {}[{}] {}", port.name,
                     std::filesystem::path(path).filename().string(), image.width, image.height,
                     fmt::join(said, ", "), name_of(port.type), fmt::join(target.shape, ","), target.layout);
}

}  // namespace

bool ImageOptions::any() const {
  return !mean.empty() || !scale.empty() || !layout.empty() || !color.empty() || !fit.empty();
}

Tensor tensor_of(const std::vector<Image>& images, const std::vector<std::string>& paths, const Port& port,
                 Dims dims, const ImageOptions& o, std::vector<std::string>& notes) {
  const auto layout = layout_of(port, dims, o);
  dims.resize(layout.size(), -1);  // of a port without a known rank
  const Target target(layout, size_of(layout, dims, port, images));
  check_values(o, port, target.size.c);
  std::vector<double> values(element_count(target.shape));
  for (std::size_t n = 0; n < static_cast<std::size_t>(target.size.n); ++n) {
    const auto which = n % images.size();
    std::string resize;
    const auto image = fitted(images[which], target.size, o.fit, resize);
    const auto cut = fill(values, n * target.n_step, image, target, o, port);
    if (cut > 0 && is_float(port.type))
      throw UsageError(
          fmt::format("--mean, --scale: {} values of {} are out of the range of {} (input \"{}\")", cut,
                      paths[which], name_of(port.type), port.name));
    if (n == which) notes.push_back(sentence(port, paths[n], images[n], target, o, resize, cut));
  }
  if (target.size.n > static_cast<std::int64_t>(images.size()))
    notes.push_back(fmt::format("input \"{}\": {} image{} repeated to a batch of {}", port.name,
                                images.size(), images.size() == 1 ? "" : "s", target.size.n));
  return from_doubles(port.type, target.shape, values);
}

}  // namespace lamina::tool
