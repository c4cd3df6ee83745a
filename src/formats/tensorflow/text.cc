#include "formats/tensorflow/text.h"

#include <algorithm>
#include <array>
#include <span>

#include <protozero/pbf_writer.hpp>

#include "formats/prototext.h"
#include "formats/reading_points.h"
#include "formats/tensorflow/proto.h"

namespace lamina::tensorflow {
namespace {

enum class Wire : std::uint8_t { text, integer, natural, flag, real32, real64, type, message };

struct Message;
struct FieldOf {
  std::string_view name;
  std::uint32_t number;
  Wire wire = Wire::text;
  const Message* message = nullptr;
};
struct Message {
  std::span<const FieldOf> fields;
};

// The messages of graph.proto that the reader asks for, and function.proto's.
extern const Message kAttrValue;

constexpr FieldOf kDimFields[]{{"size", 1, Wire::integer}, {"name", 2}};
constexpr Message kDim{kDimFields};
constexpr FieldOf kShapeFields[]{{"dim", 2, Wire::message, &kDim}, {"unknown_rank", 3, Wire::flag}};
constexpr Message kShape{kShapeFields};
constexpr FieldOf kTensorFields[]{{"dtype", 1, Wire::type},
                                  {"tensor_shape", 2, Wire::message, &kShape},
                                  {"version_number", 3, Wire::integer},
                                  {"tensor_content", 4},
                                  {"float_val", 5, Wire::real32},
                                  {"double_val", 6, Wire::real64},
                                  {"int_val", 7, Wire::integer},
                                  {"string_val", 8},
                                  {"int64_val", 10, Wire::integer},
                                  {"bool_val", 11, Wire::flag},
                                  {"half_val", 13, Wire::integer},
                                  {"uint32_val", 16, Wire::natural},
                                  {"uint64_val", 17, Wire::natural}};
constexpr Message kTensor{kTensorFields};
constexpr FieldOf kAttrEntryFields[]{{"key", 1}, {"value", 2, Wire::message, &kAttrValue}};
constexpr Message kAttrEntry{kAttrEntryFields};
constexpr FieldOf kFunctionNameFields[]{{"name", 1}, {"attr", 2, Wire::message, &kAttrEntry}};
constexpr Message kFunctionName{kFunctionNameFields};
constexpr FieldOf kListFields[]{{"s", 2},
                                {"i", 3, Wire::integer},
                                {"f", 4, Wire::real32},
                                {"b", 5, Wire::flag},
                                {"type", 6, Wire::type},
                                {"shape", 7, Wire::message, &kShape},
                                {"tensor", 8, Wire::message, &kTensor},
                                {"func", 9, Wire::message, &kFunctionName}};
constexpr Message kListMessage{kListFields};
constexpr FieldOf kAttrValueFields[]{{"list", 1, Wire::message, &kListMessage},
                                     {"s", 2},
                                     {"i", 3, Wire::integer},
                                     {"f", 4, Wire::real32},
                                     {"b", 5, Wire::flag},
                                     {"type", 6, Wire::type},
                                     {"shape", 7, Wire::message, &kShape},
                                     {"tensor", 8, Wire::message, &kTensor},
                                     {"placeholder", 9},
                                     {"func", 10, Wire::message, &kFunctionName}};
const Message kAttrValue{kAttrValueFields};
constexpr FieldOf kNodeFields[]{
    {"name", 1}, {"op", 2}, {"input", 3}, {"device", 4}, {"attr", 5, Wire::message, &kAttrEntry}};
constexpr Message kNode{kNodeFields};
constexpr FieldOf kArgumentFields[]{{"name", 1}, {"type", 3, Wire::type}};
constexpr Message kArgument{kArgumentFields};
constexpr FieldOf kSignatureFields[]{
    {"name", 1}, {"input_arg", 2, Wire::message, &kArgument}, {"output_arg", 3, Wire::message, &kArgument}};
constexpr Message kSignature{kSignatureFields};
constexpr FieldOf kReturnFields[]{{"key", 1}, {"value", 2}};
constexpr Message kReturn{kReturnFields};
constexpr FieldOf kFunctionFields[]{{"signature", 1, Wire::message, &kSignature},
                                    {"node_def", 3, Wire::message, &kNode},
                                    {"ret", 4, Wire::message, &kReturn}};
constexpr Message kFunction{kFunctionFields};
constexpr FieldOf kLibraryFields[]{{"function", 1, Wire::message, &kFunction}};
constexpr Message kLibrary{kLibraryFields};
constexpr FieldOf kVersionsFields[]{{"producer", 1, Wire::integer}, {"min_consumer", 2, Wire::integer}};
constexpr Message kVersions{kVersionsFields};
constexpr FieldOf kGraphFields[]{{"node", 1, Wire::message, &kNode},
                                 {"library", 2, Wire::message, &kLibrary},
                                 {"version", 3, Wire::integer},
                                 {"versions", 4, Wire::message, &kVersions}};
constexpr Message kGraph{kGraphFields};

const FieldOf* find(const Message& message, std::string_view name) {
  const auto it = std::find_if(message.fields.begin(), message.fields.end(),
                               [&](const FieldOf& f) { return f.name == name; });
  return it == message.fields.end() ? nullptr : &*it;
}

/// A type by name, "DT_FLOAT", or by number.
std::int64_t type_number(const ProtoText::Field& field) {
  if (field.kind() == ProtoText::Kind::number) return field.integer();
  const auto word = field.word();
  const bool reference = word.ends_with("_REF");
  const auto name = reference ? word.substr(0, word.size() - 4) : word;
  for (std::int64_t i = 0; i < 64; ++i)
    if (name_of_type(i) == name) return reference ? i + 100 : i;
  field.refuse("an element type such as DT_FLOAT");
}

void write(protozero::pbf_writer& out, const Message& message, const ProtoText::Message& text);

void write(protozero::pbf_writer& out, const FieldOf& as, const ProtoText::Field& field) {
  switch (as.wire) {
    case Wire::text: {
      const auto bytes = field.string();
      return out.add_bytes(as.number, bytes.data(), bytes.size());
    }
    case Wire::integer:
      return out.add_int64(as.number, field.integer());
    case Wire::natural:
      return out.add_uint64(as.number, field.natural());
    case Wire::flag:
      return out.add_bool(as.number, field.boolean());
    case Wire::real32:
      return out.add_float(as.number, field.single());
    case Wire::real64:
      return out.add_double(as.number, field.number());
    case Wire::type:
      return out.add_int64(as.number, type_number(field));
    case Wire::message: {
      std::string inner;  // one that is empty counts, too
      protozero::pbf_writer writer(inner);
      write(writer, *as.message, field.message());
      return out.add_message(as.number, inner);
    }
  }
}

/// Recursion is as deep as ProtoText lets messages nest.
void write(protozero::pbf_writer& out, const Message& message, const ProtoText::Message& text) {
  for (const auto field : text) {
    note_read(kReadOfNode);
    if (const auto* as = find(message, field.name())) write(out, *as, field);
  }
}

}  // namespace

bool looks_like_text_graph(std::string_view text) {
  if (!looks_like_prototext(text)) return false;
  while (!text.empty()) {
    const auto first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    if (first == std::string_view::npos) return false;
    text.remove_prefix(first);
    if (text[0] != '#') break;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
  const auto word = text.substr(0, text.find_first_of(" \t\r\n:{<"));
  return find(kGraph, word) != nullptr;
}

std::shared_ptr<const MappedFile> text_as_wire(const std::shared_ptr<const MappedFile>& file) {
  const ProtoText text(file);
  auto bytes = std::make_shared<std::string>();
  protozero::pbf_writer out(*bytes);
  write(out, kGraph, text.root());
  const auto span = std::as_bytes(std::span(bytes->data(), bytes->size()));
  return MappedFile::in_memory(file->path(), span, bytes);
}

}  // namespace lamina::tensorflow
