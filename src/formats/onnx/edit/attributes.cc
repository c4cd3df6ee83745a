/// Attributes of nodes that are changed.
#include <protozero/pbf_writer.hpp>

#include "formats/onnx/edit/model.h"
#include "formats/onnx/proto.h"
#include "formats/wire.h"

namespace lamina::onnx {

const NamedPiece* EditNode::attribute(std::string_view wanted) const {
  for (const auto& a : attributes)
    if (a.name == wanted) return &a;
  return nullptr;
}

std::optional<std::int64_t> EditNode::int_attribute(std::string_view wanted) const {
  const auto* a = attribute(wanted);
  if (!a) return std::nullopt;
  std::optional<std::int64_t> out;
  WireReader in(a->piece.bytes(), "AttributeProto");
  while (in.next())
    if (in.field() == 3)
      out = in.integer();
    else
      in.skip();
  return out;
}

std::optional<float> EditNode::float_attribute(std::string_view wanted) const {
  const auto* a = attribute(wanted);
  if (!a) return std::nullopt;
  std::optional<float> out;
  WireReader in(a->piece.bytes(), "AttributeProto");
  while (in.next())
    if (in.field() == 2)
      out = in.number();
    else
      in.skip();
  return out;
}

std::optional<Ints> EditNode::ints_attribute(std::string_view wanted) const {
  const auto* a = attribute(wanted);
  if (!a) return std::nullopt;
  Ints out;
  WireReader in(a->piece.bytes(), "AttributeProto");
  while (in.next())
    if (in.field() == 8)
      in.integers(out);
    else
      in.skip();
  return out;
}

std::optional<std::vector<float>> EditNode::floats_attribute(std::string_view wanted) const {
  const auto* a = attribute(wanted);
  if (!a) return std::nullopt;
  std::vector<float> out;
  WireReader in(a->piece.bytes(), "AttributeProto");
  while (in.next())
    if (in.field() == 7)
      in.floats(out);
    else
      in.skip();
  return out;
}

std::optional<std::string> EditNode::string_attribute(std::string_view wanted) const {
  const auto* a = attribute(wanted);
  if (!a) return std::nullopt;
  std::string out;
  WireReader in(a->piece.bytes(), "AttributeProto");
  while (in.next())
    if (in.field() == 4)
      out = in.bytes();
    else
      in.skip();
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
