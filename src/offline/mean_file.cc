#include "offline/mean_file.h"

#include <algorithm>
#include <cmath>
#include <protozero/exception.hpp>
#include <vector>

#include "base/limits.h"
#include "base/mapped_file.h"
#include "formats/caffe/blob.h"
#include "formats/wire.h"
#include "offline/faq.h"
#include "offline/request.h"

namespace lamina {
namespace {

/// [C,H,W] of its values; empty when it is no image.
Dims image_shape(const caffe::Blob& blob) {
  auto dims = blob.dims;
  if (dims.size() == 4 && (dims[0] == 1 || dims[0] == 0)) dims.erase(dims.begin());
  if (dims.size() == 2) dims.insert(dims.begin(), 1);
  if (dims.size() != 3 || element_count(dims) == 0) return {};
  return extent_of(dims) && element_count(dims) == blob.count ? dims : Dims();
}

}  // namespace

Tensor read_mean_image(const std::string& path) {
  const auto file = MappedFile::open(path);
  try {
    const auto blob = caffe::read_blob(file->text());
    const auto dims = image_shape(blob);
    if (dims.empty())
      fail(ErrorCode::bad_file, "{} values are no image of {}", blob.count, to_string(blob.dims));
    return blob.tensor(dims, file).to_aligned();
  } catch (const protozero::exception& e) {
    fail_faq(ErrorCode::bad_file, 10, "{}: cannot be read as a mean image: {}", path, words_of(e));
  } catch (const Error& e) {
    fail_faq(ErrorCode::bad_file, 10, "{}: cannot be read as a mean image: {}", path, e.what());
  }
}

Tensor cropped(const Tensor& image, std::int64_t height, std::int64_t width,
               std::optional<std::pair<std::int64_t, std::int64_t>> offsets) {
  const auto c = image.shape()[0], h = image.shape()[1], w = image.shape()[2];
  const auto [x, y] = offsets.value_or(std::pair((w - width) / 2, (h - height) / 2));
  if (x < 0 || y < 0 || width > w - x || height > h - y)
    fail_faq(ErrorCode::bad_option, 10, "the mean image is {} x {}, wanted {} x {} at ({},{})", w, h, width,
             height, x, y);
  Tensor out(ElementType::f32, {c, height, width});
  const auto from = image.data<float>();
  const auto to = out.data<float>();
  for (std::int64_t row = 0; row < c * height; ++row) {
    const auto source = from.begin() + ((row / height) * h + row % height + y) * w + x;
    std::copy(source, source + width, to.begin() + row * width);
  }
  return out;
}

std::pair<std::int64_t, std::int64_t> parse_offsets(const std::string& text) {
  const auto lists = [&] {
    try {
      return parse_numbers("--mean_file_offsets", text);
    } catch (const FaqError&) {
      return std::vector<NamedNumbers>();
    }
  }();
  const auto whole = [](double v) { return v >= 0 && v < 1e6 && v == std::floor(v); };
  if (lists.size() != 1 || !lists[0].name.empty() || lists[0].numbers.size() != 2 ||
      !whole(lists[0].numbers[0]) || !whole(lists[0].numbers[1]))
    fail_faq(ErrorCode::bad_option, 18, "--mean_file_offsets {}: wanted two numbers from 0 on, as in (x,y)",
             text);
  return {static_cast<std::int64_t>(lists[0].numbers[0]), static_cast<std::int64_t>(lists[0].numbers[1])};
}

}  // namespace lamina
