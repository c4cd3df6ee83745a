#include "formats/file_format.h"

#include <algorithm>

#include <protozero/pbf_reader.hpp>

#include "formats/loaded.h"
#include "formats/onednn_graph/graph_def.h"
#include "formats/prototext.h"

namespace lamina {
namespace {

using Wire = protozero::pbf_wire_type;

/// Text whose first character after a byte order mark and white space is '<'. A protobuf message may begin
/// so, too: a first field 1 of 60 bytes is a line break and '<', but control characters follow.
bool looks_like_xml(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '<') return false;
  const auto begin = text.substr(first, 256);
  return std::none_of(begin.begin(), begin.end(),
                      [](unsigned char c) { return c < 0x20 && c != '\t' && c != '\r' && c != '\n'; }) &&
         (begin.size() < 2 || begin[1] != '\n');
}

/// Whether a message has a field of that number and wire type, among its first few.
bool begins_with(protozero::data_view message, std::uint32_t field, Wire type) {
  protozero::pbf_reader in(message);
  for (int i = 0; i < 4 && in.next(); ++i) {
    if (in.tag() == field) return in.wire_type() == type;
    in.skip();
  }
  return false;
}

/// How many top-level fields speak for which format.
struct Evidence {
  int onnx = 0, caffe = 0, tensorflow = 0;
};

/// ModelProto: a version as a number, the graph in field 7. NetParameter: layers in 100 (name 1), or in 2
/// with the name in 4; its own name is in 1, as GraphDef's nodes are (name 1, op 2).
Evidence evidence(std::string_view bytes) try {
  Evidence e;
  protozero::pbf_reader in(bytes.data(), bytes.size());
  constexpr int kEnough = 64;
  for (int fields = 0; fields < kEnough && in.next(); ++fields) {
    if (in.wire_type() != Wire::length_delimited) {
      if (in.tag() == 1) ++e.onnx;
      in.skip();
      continue;
    }
    const auto field = in.tag();
    const auto message = in.get_view();
    if (field == 100) {
      ++e.caffe;
    } else if (field == 7) {
      ++e.onnx;
    } else if (field == 2 && begins_with(message, 4, Wire::length_delimited)) {
      ++e.caffe;
    } else if (field == 1 && message.size() > 2 && message.data()[0] == '\n' &&
               begins_with(message, 2, Wire::length_delimited)) {
      ++e.tensorflow;
    } else if (field == 4 && message.size() > 1 && message.data()[0] == '\x08') {
      ++e.tensorflow;  // VersionDef
    }
  }
  return e;
} catch (const protozero::exception&) {
  return {};
}

bool ends_with(const MappedFile& file, std::string_view extension) {
  return std::string_view(file.path()).ends_with(extension);
}

}  // namespace

FileFormat format_of(const MappedFile& file) try {
  const auto text = file.text();
  if (looks_like_xml(text)) return FileFormat::ir;
  if (onednn_graph::looks_like_json(text)) return FileFormat::onednn_graph;
  if (looks_like_tensorflow(text)) return FileFormat::tensorflow;
  if (looks_like_prototext(text)) return FileFormat::caffe_text;
  if (ends_with(file, ".prototxt")) return FileFormat::caffe_text;
  if (ends_with(file, ".json")) return FileFormat::onednn_graph;
  if (ends_with(file, ".pbtxt")) return FileFormat::tensorflow;
  const auto e = evidence(text);
  if (e.onnx > 0) return FileFormat::onnx;
  if (e.caffe > e.tensorflow) return FileFormat::caffe_weights;
  if (e.tensorflow > 0) return FileFormat::tensorflow;
  if (ends_with(file, ".caffemodel")) return FileFormat::caffe_weights;
  if (ends_with(file, ".pb")) return FileFormat::tensorflow;
  return FileFormat::onnx;
} catch (const Error&) {
  return FileFormat::onnx;
}

}  // namespace lamina
