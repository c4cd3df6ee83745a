#include "offline/mean_file.h"

#include <algorithm>
#include <cmath>
#include <protozero/pbf_reader.hpp>
#include <vector>

#include "base/mapped_file.h"
#include "base/numbers.h"
#include "offline/faq.h"
#include "offline/request.h"

namespace lamina {
namespace {

using Wire = protozero::pbf_wire_type;

constexpr auto key(std::uint32_t field, Wire wire) { return protozero::tag_and_type(field, wire); }

/// Caffe's BlobProto; values lie packed or one by one.
struct Blob {
  Dims shape, old_shape = Dims(4, 0);
  std::vector<float> values;

  explicit Blob(std::string_view bytes) {
    protozero::pbf_reader reader(bytes.data(), bytes.size());
    while (reader.next()) read_field(reader);
  }

  void read_field(protozero::pbf_reader& reader) {
    switch (reader.tag_and_type()) {
      case key(1, Wire::varint):
      case key(2, Wire::varint):
      case key(3, Wire::varint):
      case key(4, Wire::varint): {
        const auto at = reader.tag() - 1;
        old_shape[at] = reader.get_int32();
        return;
      }
      case key(5, Wire::length_delimited):
        for (const auto v : reader.get_packed_float()) values.push_back(v);
        return;
      case key(5, Wire::fixed32):
        values.push_back(reader.get_float());
        return;
      case key(7, Wire::length_delimited):
        return read_shape(reader.get_message());
      case key(8, Wire::length_delimited):
        for (const auto v : reader.get_packed_double()) values.push_back(static_cast<float>(v));
        return;
      case key(8, Wire::fixed64):
        values.push_back(static_cast<float>(reader.get_double()));
        return;
      default:
        reader.skip();
    }
  }

  void read_shape(protozero::pbf_reader reader) {
    while (reader.next()) {
      if (reader.tag_and_type() == key(1, Wire::length_delimited)) {
        for (const auto v : reader.get_packed_int64()) shape.push_back(v);
      } else if (reader.tag_and_type() == key(1, Wire::varint)) {
        shape.push_back(reader.get_int64());
      } else {
        reader.skip();
      }
    }
  }
};

/// [C,H,W], the size of so many values; empty when it is not.
Dims image_shape(const Blob& blob) {
  auto dims = blob.shape.empty() ? blob.old_shape : blob.shape;
  if (dims.size() == 4 && (dims[0] == 1 || dims[0] == 0)) dims.erase(dims.begin());
  if (dims.size() == 2) dims.insert(dims.begin(), 1);
  if (dims.size() != 3) return {};
  std::uint64_t count = 1;
  for (const auto d : dims) {
    if (d <= 0 || static_cast<std::uint64_t>(d) > blob.values.size()) return {};
    count *=
        static_cast<std::uint64_t>(d);  // of three numbers of 32 bits at most where the file is that large
    if (count > blob.values.size()) return {};
  }
  return count == blob.values.size() ? dims : Dims();
}

}  // namespace

Tensor read_mean_image(const std::string& path) {
  const auto file = MappedFile::open(path);
  try {
    const Blob blob(file->text());
    const auto dims = image_shape(blob);
    if (dims.empty())
      fail_faq(ErrorCode::bad_file, 10, "{}: {} values are no mean image of its size", path,
               blob.values.size());
    return Tensor::of(dims, blob.values);
  } catch (const protozero::exception& e) {
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
