#include "formats/tensorflow/proto.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "formats/wire.h"
#include "graph/limits.h"

namespace lamina::tensorflow {
namespace {

/// Runs `read` so that a damaged message is an Error.
template <class F>
auto undamaged(F read) try {
  return read();
} catch (const protozero::exception& e) {
  fail(ErrorCode::bad_file, "damaged: {}", words_of(e));
}

NodeDef parse_node(std::string_view bytes) {
  NodeDef node;
  WireReader in(bytes, "NodeDef");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        node.name = in.bytes();
        break;
      case 2:
        node.op = in.bytes();
        break;
      case 3:
        node.inputs.push_back(in.bytes());
        break;
      case 5:
        node.attributes.push_back(read_entry(in.bytes(), "map entry"));
        break;
      default:
        in.skip();
    }
  }
  return node;
}

std::string_view argument_name(std::string_view bytes) {
  std::string_view name;
  WireReader in(bytes, "ArgDef");
  while (in.next()) {
    if (in.field() == 1)
      name = in.bytes();
    else
      in.skip();
  }
  return name;
}

void parse_signature(std::string_view bytes, FunctionDef& function) {
  WireReader in(bytes, "OpDef");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        function.name = in.bytes();
        break;
      case 2:
        function.inputs.push_back(argument_name(in.bytes()));
        break;
      case 3:
        function.outputs.push_back(argument_name(in.bytes()));
        break;
      default:
        in.skip();
    }
  }
}

FunctionDef parse_function(std::string_view bytes) {
  FunctionDef function;
  WireReader in(bytes, "FunctionDef");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        parse_signature(in.bytes(), function);
        break;
      case 3:
        function.nodes.push_back(parse_node(in.bytes()));
        break;
      case 4:
        function.results.push_back(read_entry(in.bytes(), "map entry"));
        break;
      default:
        in.skip();
    }
  }
  return function;
}

void parse_library(std::string_view bytes, GraphDef& graph) {
  WireReader in(bytes, "FunctionDefLibrary");
  while (in.next()) {
    if (in.field() == 1)
      graph.functions.push_back(parse_function(in.bytes()));
    else
      in.skip();
  }
}

std::int64_t parse_producer(std::string_view bytes) {
  std::int64_t producer = 0;
  WireReader in(bytes, "VersionDef");
  while (in.next()) {
    if (in.field() == 1)
      producer = in.integer();
    else
      in.skip();
  }
  return producer;
}

std::int64_t parse_size(std::string_view bytes) {
  std::int64_t size = 0;
  WireReader in(bytes, "Dim");
  while (in.next()) {
    if (in.field() == 1)
      size = in.integer();
    else
      in.skip();
  }
  return size;
}

constexpr std::array<std::string_view, 24> kTypeNames{
    "DT_INVALID",    "DT_FLOAT",  "DT_DOUBLE",    "DT_INT32",   "DT_UINT8",   "DT_INT16",
    "DT_INT8",       "DT_STRING", "DT_COMPLEX64", "DT_INT64",   "DT_BOOL",    "DT_QINT8",
    "DT_QUINT8",     "DT_QINT32", "DT_BFLOAT16",  "DT_QINT16",  "DT_QUINT16", "DT_UINT16",
    "DT_COMPLEX128", "DT_HALF",   "DT_RESOURCE",  "DT_VARIANT", "DT_UINT32",  "DT_UINT64"};
constexpr std::int64_t kReference = 100;  // what DT_FLOAT_REF is more than DT_FLOAT

}  // namespace

GraphDef parse_graph(std::string_view bytes) {
  return undamaged([&] {
    GraphDef graph;
    WireReader in(bytes, "GraphDef");
    while (in.next()) {
      switch (in.field()) {
        case 1:
          graph.nodes.push_back(parse_node(in.bytes()));
          break;
        case 2:
          parse_library(in.bytes(), graph);
          break;
        case 3:
          if (graph.producer == 0)
            graph.producer = in.integer();
          else
            in.skip();
          break;
        case 4:
          graph.producer = parse_producer(in.bytes());
          break;
        default:
          in.skip();
      }
    }
    return graph;
  });
}

AttrValue parse_attribute(std::string_view bytes) {
  return undamaged([&] {
    AttrValue value;
    WireReader in(bytes, "AttrValue");
    while (in.next()) {
      if (in.field() > AttrValue::function) {
        in.skip();
        continue;
      }
      value.kind = static_cast<AttrValue::Kind>(in.field());
      switch (value.kind) {
        case AttrValue::integer:
        case AttrValue::flag:
        case AttrValue::type:
          value.i = in.integer();
          break;
        case AttrValue::number:
          value.f = in.number();
          break;
        default:
          value.bytes = in.bytes();
      }
    }
    return value;
  });
}

ListValue parse_list(std::string_view bytes) {
  return undamaged([&] {
    ListValue list;
    WireReader in(bytes, "ListValue");
    while (in.next()) {
      switch (in.field()) {
        case 2:
          list.texts.push_back(in.bytes());
          break;
        case 3:
        case 5:
        case 6:
          in.integers(list.integers);
          break;
        case 4:
          in.floats(list.numbers);
          break;
        default:
          in.skip();
      }
    }
    return list;
  });
}

Shape parse_shape(std::string_view bytes) {
  return undamaged([&] {
    std::vector<Dim> dims;
    bool unknown_rank = false;
    WireReader in(bytes, "TensorShapeProto");
    while (in.next()) {
      if (in.field() == 2) {
        const auto size = parse_size(in.bytes());
        if (size < -1) fail(ErrorCode::bad_file, "has the size {} in a shape, wanted -1 or more", size);
        dims.push_back(size < 0 ? Dim() : Dim(size));
      } else if (in.field() == 3) {
        unknown_rank = in.integer() != 0;
      } else {
        in.skip();
      }
    }
    Shape shape = unknown_rank ? Shape() : Shape(std::move(dims));
    if (const auto why = beyond_limits(shape); !why.empty()) fail(ErrorCode::bad_file, "{}", why);
    return shape;
  });
}

TensorProto parse_tensor(std::string_view bytes) {
  return undamaged([&] {
    TensorProto t;
    t.message = bytes;
    t.shape = Shape(std::vector<Dim>{});
    WireReader in(bytes, "TensorProto");
    while (in.next()) {
      switch (in.field()) {
        case 1:
          t.type = in.integer();
          break;
        case 2:
          t.shape = parse_shape(in.bytes());
          break;
        case 4:
          t.content = in.bytes();
          break;
        default:
          in.skip();
      }
    }
    return t;
  });
}

std::string_view parse_function_name(std::string_view bytes) {
  return undamaged([&] { return argument_name(bytes); });
}

ElementType element_type_of(std::int64_t data_type) {
  if (data_type > kReference) data_type -= kReference;
  switch (data_type) {  // qint8 and the like are integers whose operators know their ranges
    case 1:
      return ElementType::f32;
    case 2:
      return ElementType::f64;
    case 3:
    case 13:
      return ElementType::i32;
    case 4:
    case 12:
      return ElementType::u8;
    case 5:
    case 15:
      return ElementType::i16;
    case 6:
    case 11:
      return ElementType::i8;
    case 9:
      return ElementType::i64;
    case 10:
      return ElementType::boolean;
    case 14:
      return ElementType::bf16;
    case 16:
    case 17:
      return ElementType::u16;
    case 19:
      return ElementType::f16;
    case 22:
      return ElementType::u32;
    case 23:
      return ElementType::u64;
    default:
      return ElementType::undefined;
  }
}

std::string name_of_type(std::int64_t data_type) {
  if (data_type > kReference) data_type -= kReference;
  if (data_type < 0 || data_type >= std::ssize(kTypeNames)) return std::to_string(data_type);
  return std::string(kTypeNames[static_cast<std::size_t>(data_type)]);
}

bool looks_like_graph(std::string_view bytes) try {
  WireReader in(bytes, "GraphDef");
  if (!in.next() || in.field() != 1 || !in.packed()) return false;
  const auto node = parse_node(in.bytes());
  const auto of_word = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '>' || c == '.'; };
  return !node.name.empty() && !node.op.empty() && std::all_of(node.op.begin(), node.op.end(), of_word);
} catch (const std::exception&) {
  return false;
}

bool looks_like_saved_model(std::string_view bytes) try {
  WireReader in(bytes, "SavedModel");
  if (!in.next() || in.field() != 1 || in.packed() || in.integer() != 1) return false;
  if (!in.next() || in.field() != 2 || !in.packed()) return false;
  WireReader inner(in.bytes(), "MetaGraphDef");
  return inner.next() && inner.field() == 1 && inner.packed();
} catch (const std::exception&) {
  return false;
}

}  // namespace lamina::tensorflow
