#include "formats/onnx/edit/model.h"

#include <algorithm>
#include <limits>
#include <protozero/pbf_writer.hpp>

#include "base/error.h"
#include "formats/onnx/proto.h"
#include "formats/onnx/tensors.h"
#include "formats/wire.h"

namespace lamina::onnx {
namespace {

constexpr int kDeepest = 32;  // graphs in attributes of nodes of graphs ...

/// The field that a reader stands at as it is in the file, behind what `out` has.
void keep_field(protozero::pbf_reader& in, std::string& out) {
  protozero::pbf_writer writer(out);
  const auto tag = in.tag();  // a reader that has read its value may have none
  switch (in.wire_type()) {
    case protozero::pbf_wire_type::varint:
      writer.add_uint64(tag, in.get_uint64());
      break;
    case protozero::pbf_wire_type::fixed32:
      writer.add_fixed32(tag, in.get_fixed32());
      break;
    case protozero::pbf_wire_type::fixed64:
      writer.add_fixed64(tag, in.get_fixed64());
      break;
    case protozero::pbf_wire_type::length_delimited:
      writer.add_bytes(tag, in.get_view());
      break;
    default:
      fail(ErrorCode::bad_file, "damaged: field {} has an unknown wire type", in.tag());
  }
}

std::string_view view_of(protozero::pbf_reader& in) {
  if (in.wire_type() != protozero::pbf_wire_type::length_delimited)
    fail(ErrorCode::bad_file, "damaged: field {} has another wire type than ONNX says", in.tag());
  const auto view = in.get_view();
  return {view.data(), view.size()};
}

/// The last bytes field of that number; empty when there is none.
std::string_view bytes_field(std::string_view message, std::uint32_t field) {
  std::string_view out;
  protozero::pbf_reader in(message.data(), message.size());
  while (in.next())
    if (in.tag() == field && in.wire_type() == protozero::pbf_wire_type::length_delimited)
      out = view_of(in);
    else
      in.skip();
  return out;
}

bool has_field(std::string_view message, std::uint32_t field) {
  protozero::pbf_reader in(message.data(), message.size());
  while (in.next()) {
    if (in.tag() == field) return true;
    in.skip();
  }
  return false;
}

void add_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  protozero::pbf_writer(out).add_bytes(field, bytes.data(), bytes.size());
}

NamedPiece named(std::string_view message, std::uint32_t name_field) {
  return {std::string(bytes_field(message, name_field)), Piece(message)};
}

EditNode parse_node(std::string_view bytes) {
  EditNode n;
  protozero::pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) switch (in.tag()) {
      case 1:
        n.inputs.emplace_back(view_of(in));
        break;
      case 2:
        n.outputs.emplace_back(view_of(in));
        break;
      case 3:
        n.name = view_of(in);
        break;
      case 4:
        n.op_type = view_of(in);
        break;
      case 5:
        n.attributes.push_back(named(view_of(in), 1));
        break;
      case 7:
        n.domain = view_of(in);
        break;
      default:
        keep_field(in, n.rest);
    }
  if (n.domain == "ai.onnx") n.domain.clear();
  return n;
}

EditGraph parse_graph(std::string_view bytes) {
  EditGraph g;
  protozero::pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) switch (in.tag()) {
      case 1:
        g.nodes.push_back(parse_node(view_of(in)));
        break;
      case 5:
        g.initializers.push_back(named(view_of(in), 8));
        break;
      case 11:
        g.inputs.push_back(named(view_of(in), 1));
        break;
      case 12: {
        const auto message = view_of(in);
        g.outputs.emplace_back(bytes_field(message, 1));
        add_bytes(g.rest, 12, message);
        break;
      }
      case 13:
        g.values.push_back(named(view_of(in), 1));
        break;
      default:
        keep_field(in, g.rest);
    }
  return g;
}

void add(protozero::pbf_writer& out, std::uint32_t field, std::string_view bytes) {
  out.add_bytes(field, bytes.data(), bytes.size());
}

std::string node_bytes(const EditNode& n) {
  std::string out;
  protozero::pbf_writer writer(out);
  for (const auto& name : n.inputs) add(writer, 1, name);
  for (const auto& name : n.outputs) add(writer, 2, name);
  if (!n.name.empty()) add(writer, 3, n.name);
  add(writer, 4, n.op_type);
  for (const auto& a : n.attributes) add(writer, 5, a.piece.bytes());
  if (!n.domain.empty()) add(writer, 7, n.domain);
  return out + n.rest;
}

std::string graph_bytes(const EditGraph& g) {
  std::string out;
  protozero::pbf_writer writer(out);
  for (const auto& n : g.nodes) add(writer, 1, node_bytes(n));
  for (const auto& t : g.initializers) add(writer, 5, t.piece.bytes());
  for (const auto& v : g.inputs) add(writer, 11, v.piece.bytes());
  out += g.rest;
  for (const auto& v : g.values) add(writer, 13, v.piece.bytes());
  return out;
}

void parse_opset(std::string_view bytes, EditModel& model) {
  WireReader in(bytes, "OperatorSetIdProto");
  std::string domain;
  std::int64_t version = 0;
  while (in.next())
    if (in.field() == 1)
      domain = in.bytes();
    else if (in.field() == 2)
      version = in.integer();
    else
      in.skip();
  model.opsets[domain == "ai.onnx" ? "" : domain] = version;
}

EditModel parse(std::string_view bytes) {
  EditModel m;
  protozero::pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) switch (in.tag()) {
      case 1:
        if (in.wire_type() != protozero::pbf_wire_type::varint)
          fail(ErrorCode::bad_file, "damaged: the version of the IR is no number");
        m.ir_version = in.get_int64();
        break;
      case 7:
        m.graph = parse_graph(view_of(in));
        break;
      case 8:
        parse_opset(view_of(in), m);
        break;
      case 25:
        m.has_functions = true;
        [[fallthrough]];
      default:
        keep_field(in, m.rest);
    }
  return m;
}

void require_depth(int depth) {
  if (depth >= kDeepest) fail(ErrorCode::bad_file, "graphs are nested deeper than {}", kDeepest);
}

void change_bodies(EditNode& node, const std::function<void(EditGraph&)>& change, int depth);

/// A graph (field 6) or several (field 11) in an attribute's message.
void change_attribute(NamedPiece& attribute, const std::function<void(EditGraph&)>& change, int depth) {
  const auto message = attribute.piece.bytes();
  if (!has_field(message, 6) && !has_field(message, 11)) return;
  std::string out;
  protozero::pbf_reader in(message.data(), message.size());
  while (in.next()) {
    if (in.tag() != 6 && in.tag() != 11) {
      keep_field(in, out);
      continue;
    }
    const auto field = in.tag();
    require_depth(depth);
    auto body = parse_graph(view_of(in));
    for (auto& node : body.nodes) change_bodies(node, change, depth + 1);
    change(body);
    add_bytes(out, field, graph_bytes(body));
  }
  attribute.piece = Piece(std::move(out));
}

void change_bodies(EditNode& node, const std::function<void(EditGraph&)>& change, int depth) {
  for (auto& a : node.attributes) change_attribute(a, change, depth);
}

void each_body(const EditNode& node, const std::function<void(const EditGraph&)>& read, int depth) {
  for (const auto& a : node.attributes) {
    protozero::pbf_reader in(a.piece.bytes().data(), a.piece.bytes().size());
    while (in.next()) {
      if (in.tag() != 6 && in.tag() != 11) {
        in.skip();
        continue;
      }
      require_depth(depth);
      const auto body = parse_graph(view_of(in));
      for (const auto& inner : body.nodes) each_body(inner, read, depth + 1);
      read(body);
    }
  }
}

}  // namespace

std::int64_t EditModel::opset() const {
  const auto it = opsets.find("");
  return it == opsets.end() ? 1 : it->second;
}

namespace {

/// Where a file has the data, all of it is read: a model that is written elsewhere has it in itself.
class ExternalData {
 public:
  explicit ExternalData(const ModelSource& source) : reader_(source) {}

  /// Takes in the graph, without its bodies.
  void take_in(EditGraph& graph) {
    for (auto& t : graph.initializers)
      if (auto own = own_bytes(t.piece.bytes())) t.piece = Piece(std::move(*own));
    for (auto& node : graph.nodes)
      for (auto& a : node.attributes)
        if (may_have_any(a)) take_in(a);
  }

  /// Every external tensor says its location.
  static bool may_have_any(const NamedPiece& attribute) {
    return attribute.piece.bytes().find("location") != std::string_view::npos;
  }

 private:
  /// A tensor (field 5) or several (field 10) in an attribute's message.
  void take_in(NamedPiece& attribute) {
    const auto message = attribute.piece.bytes();
    std::string out;
    bool changed = false;
    protozero::pbf_reader in(message.data(), message.size());
    while (in.next()) {
      if (in.tag() != 5 && in.tag() != 10) {
        keep_field(in, out);
        continue;
      }
      const auto field = in.tag();
      const auto tensor = view_of(in);
      const auto own = own_bytes(tensor);
      changed = changed || own;
      add_bytes(out, field, own ? std::string_view(*own) : tensor);
    }
    if (changed) attribute.piece = Piece(std::move(out));
  }

  /// The tensor's message with the data in it; nothing where it has them already.
  std::optional<std::string> own_bytes(std::string_view message) {
    const auto t = parse_tensor(message);
    if (!t.external) return std::nullopt;
    return std::string(initializer(std::string(t.name), reader_.read(t)).piece.bytes());
  }

  TensorReader reader_;
};

void take_in_external_data(EditGraph& graph, const ModelSource& source) {
  ExternalData data(source);
  data.take_in(graph);
  for (auto& node : graph.nodes)
    if (std::any_of(node.attributes.begin(), node.attributes.end(), ExternalData::may_have_any))
      change_bodies(node, [&](EditGraph& body) { data.take_in(body); });
}

}  // namespace

EditModel edit_model(const ModelSource& source) {
  const auto& file = source.model();
  try {
    auto model = parse(file->text());
    model.file = file;
    take_in_external_data(model.graph, source);
    return model;
  } catch (const protozero::exception& e) {
    fail(ErrorCode::bad_file, "{}: damaged: {}", file->path(), words_of(e));
  } catch (const Error& e) {
    throw Error(e.code(), fmt::format("{}: {}", file->path(), e.what()));
  }
}

/// The graph stands before the operator sets: OpenVINO takes a file that has two of these in its beginning
/// for none of ONNX.
std::string to_bytes(const EditModel& model) {
  std::string out;
  protozero::pbf_writer(out).add_int64(1, model.ir_version);
  out += model.rest;
  std::size_t bytes = out.size() + model.graph.rest.size();
  for (const auto& t : model.graph.initializers) bytes += t.piece.bytes().size();
  constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
  if (bytes < kMost) add_bytes(out, 7, graph_bytes(model.graph));
  if (bytes >= kMost || out.size() >= kMost)
    fail(ErrorCode::unsupported, "the model has 2 GiB or more, which an ONNX file cannot hold in itself");
  for (const auto& [domain, version] : model.opsets) {
    std::string id;
    protozero::pbf_writer fields(id);
    add(fields, 1, domain);
    fields.add_int64(2, version);
    add_bytes(out, 8, id);
  }
  return out;
}

NamedPiece initializer(const std::string& name, const Tensor& tensor) {
  const auto type = onnx_type_of(tensor.element_type());
  if (type == DataType::undefined)
    fail(ErrorCode::unsupported, "ONNX has no elements of {}", name_of(tensor.element_type()));
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_packed_int64(1, tensor.shape().begin(), tensor.shape().end());
  writer.add_int64(2, static_cast<std::int64_t>(type));
  add(writer, 8, name);
  writer.add_bytes(9, reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
  return {name, Piece(std::move(out))};
}

void change_bodies(EditNode& node, const std::function<void(EditGraph&)>& change) {
  change_bodies(node, change, 0);
}

void each_body(const EditNode& node, const std::function<void(const EditGraph&)>& read) {
  each_body(node, read, 0);
}

}  // namespace lamina::onnx
