#include "formats/onnx/proto.h"

#include "formats/wire.h"

namespace lamina::onnx {
namespace {

constexpr int kMaxNesting = 32;  // graphs in attributes of nodes of graphs ...

GraphProto parse_graph(std::string_view bytes, int depth);

}  // namespace

TensorProto parse_tensor(std::string_view bytes) {
  TensorProto t;
  t.message = bytes;
  WireReader in(bytes, "TensorProto");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        in.integers(t.dims);
        break;
      case 2:
        t.data_type = in.integer();
        break;
      case 8:
        t.name = in.bytes();
        break;
      case 9:
        t.raw_data = in.bytes();
        break;
      case 13:
        t.external_data.push_back(read_entry(in.bytes(), "StringStringEntryProto"));
        break;
      case 14:
        t.external = in.integer() == 1;
        break;
      default:
        in.skip();
    }
  }
  return t;
}

namespace {

SparseTensorProto parse_sparse_tensor(std::string_view bytes) {
  SparseTensorProto t;
  WireReader in(bytes, "SparseTensorProto");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        t.values = parse_tensor(in.bytes());
        break;
      case 2:
        t.indices = parse_tensor(in.bytes());
        break;
      case 3:
        in.integers(t.dims);
        break;
      default:
        in.skip();
    }
  }
  return t;
}

/// Files of the first versions have no type: the field that is there tells.
int type_of_fields(const AttributeProto& a) {
  if (a.t) return AttributeProto::tensor;
  if (a.g) return AttributeProto::graph;
  if (a.sparse_tensor) return AttributeProto::sparse;
  if (!a.ints.empty()) return AttributeProto::ints_;
  if (!a.floats.empty()) return AttributeProto::floats_;
  if (!a.strings.empty()) return AttributeProto::strings_;
  return AttributeProto::undefined;
}

AttributeProto parse_attribute(std::string_view bytes, int depth) {
  AttributeProto a;
  int scalar = AttributeProto::undefined;
  WireReader in(bytes, "AttributeProto");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        a.name = in.bytes();
        break;
      case 2:
        a.f = in.number();
        scalar = AttributeProto::float_;
        break;
      case 3:
        a.i = in.integer();
        scalar = AttributeProto::int_;
        break;
      case 4:
        a.s = in.bytes();
        scalar = AttributeProto::string;
        break;
      case 5:
        a.t = std::make_shared<TensorProto>(parse_tensor(in.bytes()));
        break;
      case 6:
        a.g = std::make_shared<GraphProto>(parse_graph(in.bytes(), depth + 1));
        break;
      case 7:
        in.floats(a.floats);
        break;
      case 8:
        in.integers(a.ints);
        break;
      case 9:
        a.strings.push_back(in.bytes());
        break;
      case 20:
        a.type = static_cast<int>(in.integer());
        break;
      case 21:
        a.reference = in.bytes();
        break;
      case 22:
        a.sparse_tensor = std::make_shared<SparseTensorProto>(parse_sparse_tensor(in.bytes()));
        break;
      default:
        in.skip();
    }
  }
  if (a.type == AttributeProto::undefined)
    a.type = scalar != AttributeProto::undefined ? scalar : type_of_fields(a);
  return a;
}

NodeProto parse_node(std::string_view bytes, int depth) {
  NodeProto n;
  WireReader in(bytes, "NodeProto");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        n.inputs.push_back(in.bytes());
        break;
      case 2:
        n.outputs.push_back(in.bytes());
        break;
      case 3:
        n.name = in.bytes();
        break;
      case 4:
        n.op_type = in.bytes();
        break;
      case 5:
        n.attributes.push_back(parse_attribute(in.bytes(), depth));
        break;
      case 7:
        n.domain = in.bytes();
        break;
      case 8:
        n.overload = in.bytes();
        break;
      default:
        in.skip();
    }
  }
  if (n.op_type.empty()) fail(ErrorCode::bad_file, "a node \"{}\" has no operator type", n.name);
  return n;
}

GraphProto parse_graph(std::string_view bytes, int depth) {
  if (depth > kMaxNesting) fail(ErrorCode::bad_file, "graphs are nested more than {} deep", kMaxNesting);
  GraphProto g;
  WireReader in(bytes, "GraphProto");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        g.nodes.push_back(parse_node(in.bytes(), depth));
        break;
      case 2:
        g.name = in.bytes();
        break;
      case 5:
        g.initializers.push_back(parse_tensor(in.bytes()));
        break;
      case 11:
        g.inputs.push_back(parse_value_info(in.bytes()));
        break;
      case 12:
        g.outputs.push_back(parse_value_info(in.bytes()));
        break;
      case 15:
        g.sparse_initializers.push_back(parse_sparse_tensor(in.bytes()));
        break;
      default:
        in.skip();
    }
  }
  return g;
}

OpsetId parse_opset(std::string_view bytes) {
  OpsetId id;
  WireReader in(bytes, "OperatorSetIdProto");
  while (in.next()) {
    if (in.field() == 1)
      id.domain = in.bytes();
    else if (in.field() == 2)
      id.version = in.integer();
    else
      in.skip();
  }
  return id;
}

void sort_by_domain(std::vector<OpsetId>& opsets) {
  for (auto& o : opsets)
    if (o.domain == "ai.onnx") o.domain = "";
  std::ranges::stable_sort(opsets, {}, &OpsetId::domain);
  const auto repeated = std::ranges::unique(opsets, {}, &OpsetId::domain);
  opsets.erase(repeated.begin(), repeated.end());
}

FunctionProto parse_function(std::string_view bytes) {
  FunctionProto f;
  WireReader in(bytes, "FunctionProto");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        f.name = in.bytes();
        break;
      case 4:
        f.inputs.push_back(in.bytes());
        break;
      case 5:
        f.outputs.push_back(in.bytes());
        break;
      case 7:
        f.nodes.push_back(parse_node(in.bytes(), 0));
        break;
      case 9:
        f.opsets.push_back(parse_opset(in.bytes()));
        break;
      case 10:
        f.domain = in.bytes();
        break;
      case 11:
        f.defaults.push_back(parse_attribute(in.bytes(), 0));
        break;
      case 13:
        f.overload = in.bytes();
        break;
      default:
        in.skip();
    }
  }
  sort_by_domain(f.opsets);
  return f;
}

}  // namespace

ModelProto parse_model(std::string_view bytes) try {
  ModelProto m;
  WireReader in(bytes, "ModelProto");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        m.ir_version = in.integer();
        break;
      case 2:
        m.producer_name = in.bytes();
        break;
      case 3:
        m.producer_version = in.bytes();
        break;
      case 7:
        m.graph = parse_graph(in.bytes(), 0);
        break;
      case 8:
        m.opsets.push_back(parse_opset(in.bytes()));
        break;
      case 14:
        m.metadata.push_back(read_entry(in.bytes(), "StringStringEntryProto"));
        break;
      case 25:
        m.functions.push_back(parse_function(in.bytes()));
        break;
      default:
        in.skip();
    }
  }
  return m;
} catch (const protozero::exception& e) {
  fail(ErrorCode::bad_file, "is not an ONNX model or is damaged ({})", words_of(e));
}

}  // namespace lamina::onnx
