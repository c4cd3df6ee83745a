/// Types of inputs and outputs: TypeProto, TensorShapeProto.
#include <algorithm>

#include "formats/onnx/proto.h"
#include "formats/wire.h"

namespace lamina::onnx {
namespace {

/// Sizes of one name are equal, but exporters write "?" or "None" for each size that they do not know.
bool is_name_of_size(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
  };
  return name != "None" && std::any_of(name.begin(), name.end(), is_letter);
}

Dim parse_dim(std::string_view bytes) {
  Dim dim;
  WireReader in(bytes, "Dimension");
  while (in.next()) {
    if (in.field() == 1) {
      const auto size = in.integer();
      dim = size < 0 ? Dim() : Dim(size);  // -1 for unknown, in some files
    } else if (in.field() == 2) {
      const auto name = in.bytes();
      dim = is_name_of_size(name) ? Dim::named(std::string(name)) : Dim();
    } else {
      in.skip();
    }
  }
  return dim;
}

Shape parse_shape(std::string_view bytes) {
  std::vector<Dim> dims;
  WireReader in(bytes, "TensorShapeProto");
  while (in.next()) {
    if (in.field() == 1)
      dims.push_back(parse_dim(in.bytes()));
    else
      in.skip();
  }
  return Shape(std::move(dims));
}

void parse_type(std::string_view bytes, ValueInfoProto& v) {
  WireReader in(bytes, "TypeProto");
  while (in.next()) {
    switch (in.field()) {
      case 1: {
        v.kind = "tensor";
        WireReader tensor(in.bytes(), "TypeProto.Tensor");
        while (tensor.next()) {
          if (tensor.field() == 1)
            v.data_type = tensor.integer();
          else if (tensor.field() == 2)
            v.shape = parse_shape(tensor.bytes());
          else
            tensor.skip();
        }
        break;
      }
      case 4:
        v.kind = "sequence";
        in.skip();
        break;
      case 5:
        v.kind = "map";
        in.skip();
        break;
      case 7:
        v.kind = "opaque";
        in.skip();
        break;
      case 8:
        v.kind = "sparse tensor";
        in.skip();
        break;
      case 9:
        v.kind = "optional";
        in.skip();
        break;
      default:
        in.skip();
    }
  }
}

}  // namespace

ValueInfoProto parse_value_info(std::string_view bytes) {
  ValueInfoProto v;
  WireReader in(bytes, "ValueInfoProto");
  while (in.next()) {
    if (in.field() == 1)
      v.name = in.bytes();
    else if (in.field() == 2)
      parse_type(in.bytes(), v);
    else
      in.skip();
  }
  return v;
}

}  // namespace lamina::onnx
