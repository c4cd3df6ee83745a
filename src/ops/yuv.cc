#include "ops/yuv.h"

#include <algorithm>
#include <cmath>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "ops/require.h"

namespace lamina {

namespace {

/// Twice the size; that must be even where it is known.
Dim doubled(const Dim& half) { return half * Dim(2); }

void require_even(const InferContext& c, const Dim& size, const char* what, std::size_t input) {
  c.require(!size.known() || size.size() % 2 == 0, "input {} has shape {}, wanted an even {}", input,
            to_string(c.shape(input)), what);
}

/// [N, H, W, 3] by the planes that have a rank.
Shape picture_of(const InferContext& c, YuvFormat format) {
  Shape out = Shape::of_rank(4);
  out[3] = Dim(3);
  const bool one = c.inputs() == 1;
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    const auto& plane = c.shape(i);
    if (!plane.ranked()) continue;
    const auto channels = i > 0 && format == YuvFormat::nv12 ? 2 : 1;
    c.require(plane[3].fits(channels), "input {} has shape {}, wanted {} channels", i, to_string(plane),
              channels);
    Shape picture{plane[0], plane[1], plane[2], Dim(3)};
    if (one) {
      c.require(!plane[1].known() || plane[1].size() % 3 == 0,
                "input 0 has shape {}, wanted a height that is a multiple of 3", to_string(plane));
      picture[1] = doubled(floor_div(plane[1], 3));
    } else if (i > 0) {
      picture[1] = doubled(plane[1]);
      picture[2] = doubled(plane[2]);
    } else {
      require_even(c, plane[1], "height", i);
    }
    require_even(c, picture[2], "width", i);
    c.require(out.fits(picture), "input {} has shape {}, which is of a picture {}, wanted {}", i,
              to_string(plane), to_string(picture), to_string(out));
    for (std::size_t axis = 0; axis < 4; ++axis)
      if (!out[axis].known()) out[axis] = picture[axis];
  }
  return out;
}

}  // namespace

void YuvToRgb::infer(InferContext& c) const {
  const std::size_t planes = format == YuvFormat::nv12 ? 2 : 3;
  c.require(c.inputs() == 1 || c.inputs() == planes, "has {} inputs, wanted 1 or {}", c.inputs(), planes);
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    require_rank(c, i, 4, "a plane");
    const auto e = c.element(i);
    c.require(e == ElementType::undefined || e == ElementType::u8 || is_float(e),
              "a plane has type {}, wanted u8 or a float type", name_of(e));
    c.require(e == c.element(0), "planes have types {} and {}, wanted one type", name_of(c.element(0)),
              name_of(e));
  }
  c.set(0, c.element(0), picture_of(c, format));
}

namespace {

/// Where the colours of pixel pair x and row pair y are: from `first` on in a plane.
struct Samples {
  std::size_t input = 0;
  std::int64_t first = 0, image = 0, row = 0, step = 1;  ///< distances between neighbours

  std::int64_t at(std::int64_t n, std::int64_t y, std::int64_t x) const {
    return first + n * image + y * row + x * step;
  }
};

struct Planes {
  Samples y, u, v;

  Planes(const EvalContext& c, YuvFormat format) {
    const auto &out = c.out_dims(), &first = c.dims(0);
    const auto height = out[1], width = out[2], pixels = height * width;
    const bool one = c.inputs() == 1, pairs = format == YuvFormat::nv12;
    y = {0, 0, one ? first[1] * width : pixels, width, 1};
    // In one plane the colours stand behind the brightness.
    const auto image = one ? y.image : (pairs ? pixels / 2 : pixels / 4), behind = one ? pixels : 0;
    const auto row = pairs ? width : width / 2;
    u = {one ? 0U : 1U, behind, image, row, pairs ? 2 : 1};
    v = u;
    if (pairs)
      v.first += 1;
    else if (one)
      v.first += pixels / 4;
    else
      v.input = 2;
  }
};

std::uint8_t stored(float v, std::uint8_t) {
  return static_cast<std::uint8_t>(std::clamp(std::nearbyint(v), 0.0f, 255.0f));
}
float stored(float v, float) { return std::clamp(v, 0.0f, 255.0f); }

/// In f32 and halves to even, so that no pixel differs from OpenVINO.
template <class T>
void to_colours(const std::vector<const T*>& planes, const Planes& at, const Dims& dims, ColourOrder order,
                T* out) {
  const auto height = dims[1], width = dims[2];
  const int red = order == ColourOrder::rgb ? 0 : 2;
  const auto read = [&](const Samples& s, std::int64_t n, std::int64_t y, std::int64_t x) {
    return static_cast<float>(planes[s.input][s.at(n, y, x)]);
  };
  parallel_for(dims[0] * height, 16, [&](std::int64_t begin, std::int64_t end) {
    StopPoints points;
    for (auto line = begin; line < end; points(width), ++line)
      for (std::int64_t x = 0; x < width; ++x) {
        const auto n = line / height, y = line % height;
        const float c = 1.164f * (read(at.y, n, y, x) - 16.0f), d = read(at.u, n, y / 2, x / 2) - 128.0f,
                    e = read(at.v, n, y / 2, x / 2) - 128.0f;
        T* pixel = out + (line * width + x) * 3;
        pixel[red] = stored(c + 1.596f * e, T());
        pixel[1] = stored(c - 0.391f * d - 0.813f * e, T());
        pixel[2 - red] = stored(c + 2.018f * d, T());
      }
  });
}

}  // namespace

void YuvToRgb::evaluate(EvalContext& c) const {
  const Planes at(c, format);
  const auto& dims = c.out_dims();
  if (c.in(0).element_type() == ElementType::u8) {
    std::vector<const std::uint8_t*> planes;
    for (std::size_t i = 0; i < c.inputs(); ++i)
      planes.push_back(reinterpret_cast<const std::uint8_t*>(c.in(i).raw()));
    return to_colours(planes, at, dims, order, reinterpret_cast<std::uint8_t*>(c.out().raw()));
  }
  std::vector<std::vector<float>> values;
  std::vector<const float*> planes;
  for (std::size_t i = 0; i < c.inputs(); ++i) values.push_back(c.floats(i));
  for (const auto& plane : values) planes.push_back(plane.data());
  std::vector<float> out(c.out().size());
  to_colours(planes, at, dims, order, out.data());
  c.store(0, out);
}

}  // namespace lamina
