#include "tests/mutation/protobuf_tree.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <stdexcept>

#include "tests/mutation/protobuf_schema.h"

namespace lamina::testing {
namespace {

constexpr std::size_t kMostNumbers = 64;  // of a field; more of them stay bytes
constexpr int kDeepest = 40;

Tree leaf(std::string_view name, Tree::Kind kind) { return {std::string(name), kind}; }

/// A field of bytes that the schema does not name: "#number".
Tree other(protozero::pbf_reader& field) {
  auto out = leaf("#" + std::to_string(field.tag()), Tree::Kind::bytes);  // before its value is read
  out.integer = static_cast<std::int64_t>(field.wire_type());
  out.text = field.get_string();
  return out;
}

/// One element of a repeated field, or all of a packed one.
template <class Get, class Packed>
void numbers(protozero::pbf_reader& in, const ProtobufField& f, Tree& to, Tree::Kind kind, const Get& get,
             const Packed& get_packed) {
  const auto add = [&](auto value) {
    auto number = leaf(f.name, kind);
    if (kind == Tree::Kind::integer)
      number.integer = static_cast<std::int64_t>(value);
    else
      number.real = static_cast<double>(value);
    to.children.push_back(std::move(number));
  };
  if (in.wire_type() != protozero::pbf_wire_type::length_delimited) return add(get(in));
  auto copy = in;
  const auto all = get_packed(in);
  if (all.size() > kMostNumbers) {
    to.children.push_back(other(copy));
    return;
  }
  for (auto v : all) add(v);
}

void parse(std::string_view bytes, std::string_view message, Tree& to, int depth);

void parse_field(protozero::pbf_reader& in, const ProtobufField& f, Tree& to, int depth) {
  switch (f.type) {
    case 'm': {
      auto child = leaf(f.name, Tree::Kind::group);
      const auto view = in.get_view();
      parse({view.data(), view.size()}, f.message, child, depth + 1);
      child.text = std::string(f.message);
      to.children.push_back(std::move(child));
      return;
    }
    case 'i':
      return numbers(
          in, f, to, Tree::Kind::integer, [](auto& i) { return i.get_int64(); },
          [](auto& i) { return i.get_packed_int64(); });
    case 'f':
      return numbers(
          in, f, to, Tree::Kind::real, [](auto& i) { return i.get_float(); },
          [](auto& i) { return i.get_packed_float(); });
    case 'd':
      return numbers(
          in, f, to, Tree::Kind::real, [](auto& i) { return i.get_double(); },
          [](auto& i) { return i.get_packed_double(); });
    default: {
      auto child = leaf(f.name, f.type == 's' ? Tree::Kind::text : Tree::Kind::bytes);
      child.text = in.get_string();
      child.integer = 2;
      to.children.push_back(std::move(child));
    }
  }
}

void parse(std::string_view bytes, std::string_view message, Tree& to, int depth) {
  if (depth > kDeepest) throw std::runtime_error("too deep");
  to.text = std::string(message);
  const auto& fields = fields_of(message);
  protozero::pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) {
    const auto f = std::find_if(fields.begin(), fields.end(), [&](auto& x) { return x.number == in.tag(); });
    if (f != fields.end()) {
      parse_field(in, *f, to, depth);
    } else if (in.wire_type() == protozero::pbf_wire_type::length_delimited) {
      to.children.push_back(other(in));
    } else {
      in.skip();
    }
  }
}

void write(const Tree& tree, std::string& bytes) {
  protozero::pbf_writer out(bytes);
  const auto& fields = fields_of(tree.text);
  for (const auto& c : tree.children) {
    if (c.name.starts_with("#")) {
      out.add_bytes(static_cast<std::uint32_t>(std::stoul(c.name.substr(1))), c.text);
      continue;
    }
    const auto f = std::find_if(fields.begin(), fields.end(), [&](auto& x) { return x.name == c.name; });
    if (f == fields.end()) continue;  // a part of another message
    switch (f->type) {
      case 'm':
        if (c.kind == Tree::Kind::group) {
          std::string inner;
          auto part = c;
          part.text = std::string(f->message);
          write(part, inner);
          out.add_message(f->number, inner);
        }
        break;
      case 'i':
        out.add_int64(f->number, c.integer);
        break;
      case 'f':
        out.add_float(f->number, static_cast<float>(c.real));
        break;
      case 'd':
        out.add_double(f->number, c.real);
        break;
      default:
        out.add_string(f->number, c.text);
    }
  }
}

Tree protobuf_tree(std::string_view bytes, std::string_view message) {
  Tree root = leaf(message, Tree::Kind::group);
  parse(bytes, message, root, 0);
  return root;
}

/// Raw data of few elements become numbers, which are easier to change.
void unpack_raw(Tree& tensor) {
  auto* raw = tensor.find("raw_data");
  const auto type = tensor.integer_of("data_type", 0);
  const std::size_t size = type == 1 || type == 6 ? 4 : type == 7 ? 8 : 0;
  if (!raw || size == 0 || raw->text.size() > kMostNumbers * size || raw->text.size() % size != 0) return;
  const auto bytes = raw->text;
  std::erase_if(tensor.children, [](const Tree& c) { return c.name == "raw_data"; });
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    auto number = leaf(type == 1   ? "float_data"
                       : type == 6 ? "int32_data"
                                   : "int64_data",
                       type == 1 ? Tree::Kind::real : Tree::Kind::integer);
    float f = 0;
    std::int32_t i = 0;
    std::memcpy(type == 1 ? static_cast<void*>(&f) : &i, bytes.data() + at, 4);
    number.real = static_cast<double>(f);
    number.integer = i;
    if (type == 7) std::memcpy(&number.integer, bytes.data() + at, 8);
    tensor.children.push_back(std::move(number));
  }
}

void each_group(Tree& tree, std::string_view message, const std::function<void(Tree&)>& change) {
  if (tree.kind == Tree::Kind::group && tree.text == message) change(tree);
  for (auto& c : tree.children) each_group(c, message, change);
}

}  // namespace

Tree onnx_tree(std::string_view bytes) {
  auto tree = protobuf_tree(bytes, "ModelProto");
  if (!tree.find("graph")) throw std::runtime_error("no ONNX model");
  each_group(tree, "TensorProto", unpack_raw);
  return tree;
}

Tree tensorflow_tree(std::string_view bytes) {
  auto tree = protobuf_tree(bytes, "GraphDef");
  if (!tree.find("node")) throw std::runtime_error("no TensorFlow graph");
  return tree;
}

Tree caffemodel_tree(std::string_view bytes) { return protobuf_tree(bytes, "NetParameter"); }

std::string protobuf_bytes(const Tree& tree) {
  std::string bytes;
  write(tree, bytes);
  return bytes;
}

namespace {

/// Gives the tensor `count` children of the name, by repeating those of any name in `names`, or zeros.
void resize_numbers(Tree& tensor, std::string_view name, Tree::Kind kind, std::size_t count,
                    std::initializer_list<std::string_view> names) {
  std::vector<Tree> values;
  std::erase_if(tensor.children, [&](const Tree& c) {
    const bool is_value = std::find(names.begin(), names.end(), c.name) != names.end();
    if (is_value) values.push_back(c);
    return is_value;
  });
  if (values.empty()) values.push_back(leaf(name, kind));
  for (std::size_t i = 0; i < count; ++i) {
    auto v = values[i % values.size()];
    if (v.kind != kind) {
      v.integer = std::abs(v.real) < 1e9 ? static_cast<std::int64_t>(v.real) : 0;
      v.real = kind == Tree::Kind::real && v.kind == Tree::Kind::integer
                   ? static_cast<double>(values[i % values.size()].integer)
                   : v.real;
    }
    v.name = std::string(name);
    v.kind = kind;
    tensor.children.push_back(std::move(v));
  }
}

/// The product of sizes; nothing where it is not to be met.
std::optional<std::size_t> count_of(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (auto s : sizes) {
    if (s < 0 || s > 4096) return std::nullopt;
    count *= s;
    if (count > 4096) return std::nullopt;
  }
  return static_cast<std::size_t>(count);
}

std::vector<std::int64_t> sizes_of(const Tree& group, std::string_view name) {
  std::vector<std::int64_t> out;
  for (const auto& c : group.children)
    if (c.name == name) out.push_back(c.kind == Tree::Kind::group ? c.integer_of("size", 0) : c.integer);
  return out;
}

void repeat(std::string& bytes, std::size_t size) {
  const std::string was = bytes.empty() ? std::string(1, '\0') : bytes;
  bytes.clear();
  while (bytes.size() < size) bytes += was;
  bytes.resize(size);
}

void repair_onnx(Tree& t) {
  const auto type = t.integer_of("data_type", 1);
  const auto count = count_of(sizes_of(t, "dims"));
  if (!count) return;
  constexpr std::size_t sizes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2, 1, 1, 1, 1};
  const auto known = type > 0 && type < 21 ? sizes[type] : 1;
  for (auto& c : t.children)
    if (c.name == "raw_data" || c.name.starts_with("#")) {
      if (c.name == "raw_data") repeat(c.text, *count * known);
      return;
    }
  const auto data = {std::string_view("float_data"), std::string_view("int32_data"),
                     std::string_view("int64_data"), std::string_view("double_data"),
                     std::string_view("uint64_data")};
  if (type == 8) return;
  const bool real = type == 1 || type == 11;
  resize_numbers(t,
                 type == 1                  ? "float_data"
                 : type == 11               ? "double_data"
                 : type == 7                ? "int64_data"
                 : type == 12 || type == 13 ? "uint64_data"
                                            : "int32_data",
                 real ? Tree::Kind::real : Tree::Kind::integer, *count, data);
}

void repair_tensorflow(Tree& t) {
  const auto* shape = t.find("tensor_shape");
  const auto count = count_of(shape ? sizes_of(*shape, "dim") : std::vector<std::int64_t>());
  if (!count) return;
  const auto type = t.integer_of("dtype", 1);
  constexpr std::size_t sizes[] = {0, 4, 8, 4, 1, 2, 1, 0, 8, 8, 1, 1, 1, 4, 2, 2, 2, 2, 16, 2, 0, 0, 4, 8};
  if (auto* raw = t.find("tensor_content"))
    return repeat(raw->text, *count * (type > 0 && type < 24 ? sizes[type] : 1));
  const auto data = {std::string_view("float_val"), std::string_view("int_val"),
                     std::string_view("int64_val"), std::string_view("double_val"),
                     std::string_view("bool_val"),  std::string_view("half_val")};
  if (type == 7) return;
  const auto* name = type == 1    ? "float_val"
                     : type == 2  ? "double_val"
                     : type == 9  ? "int64_val"
                     : type == 10 ? "bool_val"
                     : type == 19 ? "half_val"
                                  : "int_val";
  const auto was = static_cast<std::size_t>(
      std::count_if(t.children.begin(), t.children.end(), [&](const Tree& c) { return c.name == name; }));
  resize_numbers(t, name, type <= 2 ? Tree::Kind::real : Tree::Kind::integer,
                 std::min(*count, std::max<std::size_t>(was, 1)), data);
}

void repair_caffe(Tree& t) {
  const auto* shape = t.find("shape");
  const auto count = count_of(shape ? sizes_of(*shape, "dim")
                                    : std::vector{t.integer_of("num", 1), t.integer_of("channels", 1),
                                                  t.integer_of("height", 1), t.integer_of("width", 1)});
  if (!count) return;
  for (const auto& c : t.children)
    if (c.name.starts_with("#")) {
      std::erase_if(t.children, [](const Tree& x) { return x.name.starts_with("#"); });
      break;
    }
  const bool doubles = t.find("double_data") != nullptr;
  resize_numbers(t, doubles ? "double_data" : "data", Tree::Kind::real, *count,
                 {std::string_view("data"), std::string_view("double_data")});
}

}  // namespace

void repair_tensor(Tree& tensor, std::string_view message) {
  if (message == "TensorProto") repair_onnx(tensor);
  if (message == "TfTensor") repair_tensorflow(tensor);
  if (message == "Blob") repair_caffe(tensor);
}

}  // namespace lamina::testing
