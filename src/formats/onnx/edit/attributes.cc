/// Attributes of nodes that are changed.
#include <protozero/pbf_writer.hpp>

#include "formats/onnx/edit/model.h"
#include "formats/onnx/proto.h"
#include "formats/wire.h"

namespace lamina::onnx {
namespace {

/// Calls `read` at each field of that number.
template <class Read>
void each_field(const NamedPiece& attribute, std::uint32_t number, Read read) {
  WireReader in(attribute.piece.bytes(), "AttributeProto");
  while (in.next())
    if (in.field() == number)
      read(in);
    else
      in.skip();
}

}  // namespace

const NamedPiece* EditNode::attribute(std::string_view wanted) const {
  for (const auto& a : attributes)
    if (a.name == wanted) return &a;
  return nullptr;
}

std::optional<std::int64_t> EditNode::int_attribute(std::string_view wanted) const {
  std::optional<std::int64_t> out;
  if (const auto* a = attribute(wanted)) each_field(*a, 3, [&](WireReader& in) { out = in.integer(); });
  return out;
}

std::optional<float> EditNode::float_attribute(std::string_view wanted) const {
  std::optional<float> out;
  if (const auto* a = attribute(wanted)) each_field(*a, 2, [&](WireReader& in) { out = in.number(); });
  return out;
}

std::optional<Ints> EditNode::ints_attribute(std::string_view wanted) const {
  const auto* a = attribute(wanted);
  if (!a) return std::nullopt;
  Ints out;
  each_field(*a, 8, [&](WireReader& in) { in.integers(out); });
  return out;
}

std::optional<std::vector<float>> EditNode::floats_attribute(std::string_view wanted) const {
  const auto* a = attribute(wanted);
  if (!a) return std::nullopt;
  std::vector<float> out;
  each_field(*a, 7, [&](WireReader& in) { in.floats(out); });
  return out;
}

std::optional<std::string> EditNode::string_attribute(std::string_view wanted) const {
  const auto* a = attribute(wanted);
  if (!a) return std::nullopt;
  std::string out;
  each_field(*a, 4, [&](WireReader& in) { out = in.bytes(); });
  return out;
}

void EditNode::remove_attribute(std::string_view wanted) {
  std::erase_if(attributes, [&](const NamedPiece& a) { return a.name == wanted; });
}

void EditNode::set_attribute(std::string_view wanted, std::int64_t value) {
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_bytes(1, wanted.data(), wanted.size());
  writer.add_int64(3, value);
  writer.add_int32(20, AttributeProto::int_);
  remove_attribute(wanted);
  attributes.push_back({std::string(wanted), Piece(std::move(out))});
}

void EditNode::set_attribute(std::string_view wanted, std::string_view value) {
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_bytes(1, wanted.data(), wanted.size());
  writer.add_bytes(4, value.data(), value.size());
  writer.add_int32(20, AttributeProto::string);
  remove_attribute(wanted);
  attributes.push_back({std::string(wanted), Piece(std::move(out))});
}

}  // namespace lamina::onnx
