#include "formats/ir/blobs.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/cancellation.h"
#include "formats/booleans.h"
#include "formats/ir/text.h"
#include "graph/limits.h"

namespace lamina::ir {
namespace {

/// Bytes by bytes whose bits stand in the other order.
constexpr auto kReversed = [] {
  std::array<std::uint8_t, 256> table{};
  for (unsigned i = 0; i < 256; ++i)
    for (unsigned bit = 0; bit < 8; ++bit)
      table[i] = static_cast<std::uint8_t>(table[i] | (i >> bit & 1U) << (7 - bit));
  return table;
}();

std::size_t bytes_of(ElementType type, std::size_t count) {
  return (count * static_cast<std::size_t>(bits_of(type)) + 7) / 8;
}

}  // namespace

void Blobs::open(const std::string& what) {
  if (file_) return;
  try {
    file_ = source_.weights();
  } catch (const Error& error) {
    throw ReadError(error, fmt::format("{} ({} needs it)", error.what(), what));
  }
}

const std::byte* Blobs::slice(const XmlFile& xml, pugi::xml_node node, const std::string& what,
                              std::uint64_t offset, std::uint64_t size) {
  if (size == 0) return nullptr;
  open(what);
  if (offset > file_->size() || size > file_->size() - offset)
    xml.fail(node, "{}: bytes {} to {}+{} of '{}', which has {}", what, offset, offset, size, file_->path(),
             file_->size());
  return file_->data() + offset;
}

Tensor Blobs::constant(const XmlFile& xml, const Layer& layer, BitOrder order) {
  const auto what = fmt::format("constant '{}'", layer.name);
  if (!layer.data) xml.fail(layer.xml, "{} has no <data>", what);
  const auto type_text = xml.attribute(layer.data, "element_type");
  const auto type = parse_element_type(type_text);
  if (!type || *type == ElementType::undefined)
    xml.fail(layer.data, "{} has the unknown element type '{}'", what, type_text.substr(0, 80));
  const auto shape_text = xml.attribute(layer.data, "shape");
  const auto shape = parse_shape(shape_text);
  if (!shape || !shape->known())
    xml.fail(layer.data, "{} has the shape \"{}\", wanted sizes", what, shape_text.substr(0, 80));
  return tensor(xml, layer.data, what, {*type, *shape}, order);
}

std::size_t Blobs::declared_bytes(const XmlFile& xml, pugi::xml_node node, const std::string& what) {
  const auto offset = xml.integer(node, "offset"), size = xml.integer(node, "size");
  if (offset < 0 || size < 0) xml.fail(node, "{} has offset {} and size {}", what, offset, size);
  return static_cast<std::size_t>(size);
}

Tensor Blobs::tensor(const XmlFile& xml, pugi::xml_node node, const std::string& what, const TensorType& type,
                     BitOrder order) {
  if (const auto wrong = beyond_limits(type.shape); !wrong.empty()) xml.fail(node, "{} {}", what, wrong);
  const Dims dims = type.shape.sizes();
  const std::size_t count = element_count(dims), size = declared_bytes(xml, node, what);
  const auto offset = static_cast<std::uint64_t>(xml.integer(node, "offset"));
  const auto* data = slice(xml, node, what, offset, size);
  if (count > size / static_cast<std::size_t>(bits_of(type.element)) * 8 + 16)
    xml.fail(node, "{}: {} bytes are too few for {}", what, size, to_string(type));
  const std::size_t bytes = bytes_of(type.element, count);
  if (bytes > size) xml.fail(node, "{} has {} bytes, {} needs {}", what, size, to_string(type), bytes);
  if (bytes == 0) return Tensor(type.element, dims);
  // Numbers of 2 and 4 bits begin with the low one of a byte, single bits with the high one.
  const bool bits = type.element == ElementType::u1;
  const bool change = bits ? order == BitOrder::high_first
                           : type.element == ElementType::boolean && !are_proper_booleans({data, bytes});
  if (change) return rewritten(xml, node, what, type.element, dims, data, offset, bytes);
  return Tensor::share(type.element, dims, file_, data);
}

Tensor Blobs::bytes(const XmlFile& xml, const Layer& layer) {
  const auto offset = xml.integer(layer.data, "offset"), size = xml.integer(layer.data, "size");
  if (offset < 0 || size < 0)
    xml.fail(layer.data, "constant '{}' has offset {} and size {}", layer.name, offset, size);
  const auto* data = slice(xml, layer.data, fmt::format("constant '{}'", layer.name),
                           static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(size));
  if (size == 0) return Tensor(ElementType::u8, {0});
  return Tensor::share(ElementType::u8, {size}, file_, data);
}

// Layers that name the same bytes share one copy, and all copies together stay within the file's size:
// overlapping blobs cannot blow up memory.
Tensor Blobs::rewritten(const XmlFile& xml, pugi::xml_node node, const std::string& what, ElementType type,
                        const Dims& dims, const std::byte* data, std::uint64_t offset, std::size_t bytes) {
  Tensor& copy = rewritten_[{offset, bytes, type}];
  if (!copy.valid()) {
    rewritten_bytes_ += bytes;
    if (rewritten_bytes_ > file_->size())
      xml.fail(node, "{} overlaps others of type {}", what, name_of(type));
    copy = Tensor(ElementType::u8, {static_cast<std::int64_t>(bytes)});
    const auto* in = reinterpret_cast<const std::uint8_t*>(data);
    auto* const out = copy.data<std::uint8_t>().data();
    for_pieces(bytes, [&](std::size_t begin, std::size_t end) {
      std::transform(in + begin, in + end, out + begin, [&](std::uint8_t byte) {
        return type == ElementType::u1 ? kReversed[byte] : static_cast<std::uint8_t>(byte != 0);
      });
    });
  }
  const auto held = std::make_shared<Tensor>(copy);
  return Tensor::share(type, dims, held, copy.raw());
}

}  // namespace lamina::ir
