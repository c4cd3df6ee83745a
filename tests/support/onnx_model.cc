#include "tests/support/onnx_model.h"

#include <protozero/pbf_writer.hpp>

#include "interpreter/interpreter.h"
#include "lamina/error.h"
#include "tests/support/kept_models.h"

namespace lamina::testing {
namespace {

using protozero::pbf_writer;

template <class F>
std::string attribute_with(std::string_view name, int type, F fill) {
  std::string bytes;
  pbf_writer out(bytes);
  out.add_string(1, name.data(), name.size());
  fill(out);
  out.add_int32(20, type);
  return bytes;
}

void add(pbf_writer& out, protozero::pbf_tag_type field, std::string_view bytes) {
  out.add_bytes(field, bytes.data(), bytes.size());
}

std::string value_info(std::string_view name, ElementType type, const Texts* dims) {
  std::string bytes;
  pbf_writer out(bytes);
  add(out, 1, name);
  pbf_writer any(out, 2);
  pbf_writer tensor(any, 1);
  tensor.add_int32(1, onnx_type(type));
  if (!dims) return tensor.commit(), any.commit(), bytes;
  pbf_writer shape(tensor, 2);
  for (const auto& d : *dims) {
    std::string one;
    pbf_writer dim(one);
    if (d.find_first_not_of("0123456789-") == std::string::npos)
      dim.add_int64(1, std::stoll(d));
    else if (d != "?")
      dim.add_string(2, d);
    shape.add_message(1, one);
  }
  shape.commit();
  tensor.commit();
  any.commit();
  return bytes;
}

}  // namespace

int onnx_type(ElementType type) {
  static const std::map<ElementType, int> all{
      {ElementType::f32, 1},         {ElementType::u8, 2},          {ElementType::i8, 3},
      {ElementType::u16, 4},         {ElementType::i16, 5},         {ElementType::i32, 6},
      {ElementType::i64, 7},         {ElementType::boolean, 9},     {ElementType::f16, 10},
      {ElementType::f64, 11},        {ElementType::u32, 12},        {ElementType::u64, 13},
      {ElementType::bf16, 16},       {ElementType::u4, 21},         {ElementType::i4, 22},
      {ElementType::f8e4m3, 17},     {ElementType::f8e4m3fnuz, 18}, {ElementType::f8e5m2, 19},
      {ElementType::f8e5m2fnuz, 20}, {ElementType::f4e2m1, 23},     {ElementType::f8e8m0, 24},
      {ElementType::u2, 25},         {ElementType::i2, 26}};
  const auto it = all.find(type);
  return it == all.end() ? 8 : it->second;  // else a string
}

std::string attribute(std::string_view name, std::int64_t value) {
  return attribute_with(name, 2, [&](pbf_writer& out) { out.add_int64(3, value); });
}
std::string attribute(std::string_view name, int value) { return attribute(name, std::int64_t{value}); }
std::string attribute(std::string_view name, float value) {
  return attribute_with(name, 1, [&](pbf_writer& out) { out.add_float(2, value); });
}
std::string attribute(std::string_view name, std::string_view text) {
  return attribute_with(name, 3, [&](pbf_writer& out) { add(out, 4, text); });
}
std::string attribute(std::string_view name, const char* text) {
  return attribute(name, std::string_view(text));
}
std::string attribute(std::string_view name, const std::vector<std::int64_t>& values) {
  return attribute_with(name, 7, [&](pbf_writer& out) {
    for (auto v : values) out.add_int64(8, v);
  });
}
std::string attribute(std::string_view name, const std::vector<float>& values) {
  return attribute_with(name, 6,
                        [&](pbf_writer& out) { out.add_packed_float(7, values.begin(), values.end()); });
}
std::string attribute(std::string_view name, const std::vector<std::string>& texts) {
  return attribute_with(name, 8, [&](pbf_writer& out) {
    for (const auto& t : texts) add(out, 9, t);
  });
}
std::string attribute(std::string_view name, const Tensor& tensor) {
  return attribute_with(name, 4, [&](pbf_writer& out) { add(out, 5, tensor_proto(tensor, "")); });
}
std::string graph_attribute(std::string_view name, std::string_view graph) {
  return attribute_with(name, 5, [&](pbf_writer& out) { add(out, 6, graph); });
}
std::string reference_attribute(std::string_view name, std::string_view of) {
  return attribute_with(name, 0, [&](pbf_writer& out) { add(out, 21, of); });
}

std::string node(std::string_view type, const Texts& inputs, const Texts& outputs, const Texts& attributes,
                 std::string_view name, std::string_view domain) {
  std::string bytes;
  pbf_writer out(bytes);
  for (const auto& i : inputs) add(out, 1, i);
  for (const auto& o : outputs) add(out, 2, o);
  add(out, 3, name);
  add(out, 4, type);
  for (const auto& a : attributes) add(out, 5, a);
  if (!domain.empty()) add(out, 7, domain);
  return bytes;
}

std::string tensor_proto(const Tensor& tensor, std::string_view name) {
  std::string bytes;
  pbf_writer out(bytes);
  out.add_packed_int64(1, tensor.shape().begin(), tensor.shape().end());
  out.add_int32(2, onnx_type(tensor.element_type()));
  add(out, 8, name);
  add(out, 9, {reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()});
  return bytes;
}

OnnxGraph& OnnxGraph::input(std::string_view name, ElementType type, const Texts& dims) {
  pbf_writer out(bytes_);
  add(out, 11, value_info(name, type, &dims));
  return *this;
}

OnnxGraph& OnnxGraph::input_without_shape(std::string_view name, ElementType type) {
  pbf_writer out(bytes_);
  add(out, 11, value_info(name, type, nullptr));
  return *this;
}

OnnxGraph& OnnxGraph::output(std::string_view name) {
  pbf_writer out(bytes_);
  add(out, 12, value_info(name, ElementType::f32, nullptr));
  return *this;
}

OnnxGraph& OnnxGraph::initializer(std::string_view name, const Tensor& tensor) {
  return raw_initializer(tensor_proto(tensor, name));
}

OnnxGraph& OnnxGraph::raw_initializer(std::string_view bytes) {
  pbf_writer out(bytes_);
  add(out, 5, bytes);
  return *this;
}

OnnxGraph& OnnxGraph::sparse_initializer(std::string_view bytes) {
  pbf_writer out(bytes_);
  add(out, 15, bytes);
  return *this;
}

OnnxGraph& OnnxGraph::node(std::string_view type, const Texts& inputs, const Texts& outputs,
                           const Texts& attributes, std::string_view name, std::string_view domain) {
  pbf_writer out(bytes_);
  add(out, 1, testing::node(type, inputs, outputs, attributes, name, domain));
  return *this;
}

std::string function(std::string_view name, const Texts& inputs, const Texts& outputs, const Texts& nodes,
                     const Texts& defaults) {
  std::string bytes;
  pbf_writer out(bytes);
  add(out, 1, name);
  for (const auto& i : inputs) add(out, 4, i);
  for (const auto& o : outputs) add(out, 5, o);
  for (const auto& n : nodes) add(out, 7, n);
  add(out, 10, "local");
  for (const auto& a : defaults) add(out, 11, a);
  return bytes;
}

std::string onnx_model(const OnnxGraph& graph, int opset, const Texts& functions, int ir_version) {
  std::string bytes;
  pbf_writer out(bytes);
  out.add_int64(1, ir_version);
  out.add_string(2, "tests");
  for (const auto& [domain, version] : {std::pair{"", opset}, {"com.microsoft", 1}, {"local", 1}}) {
    pbf_writer id(out, 8);
    id.add_string(1, domain);
    id.add_int64(2, version);
  }
  add(out, 7, graph.bytes());
  for (const auto& f : functions) add(out, 25, f);
  return bytes;
}

Loaded read_onnx_bytes(std::string_view bytes) {
  const TemporaryFolder folder;
  write_file(folder.file("m.onnx"), bytes);
  auto loaded = read_onnx(folder.file("m.onnx"));
  keep_model("onnx", bytes);
  return loaded;
}

std::vector<Tensor> run_onnx(const OnnxGraph& graph, const std::vector<Tensor>& inputs, int opset) {
  return interpret(read_onnx_bytes(onnx_model(graph, opset)).graph, inputs);
}

std::string onnx_refusal(std::string_view bytes) try {
  const TemporaryFolder folder;
  write_file(folder.file("m.onnx"), bytes);
  try {
    read_onnx(folder.file("m.onnx"));
    return "";
  } catch (const Error& e) {
    const std::string text = e.what();
    const auto start = folder.file("m.onnx") + ": ";
    return text.starts_with(start) ? text.substr(start.size()) : "no path in: " + text;
  }
} catch (const std::exception& e) {
  return std::string("not an Error: ") + e.what();
}

Tensor run_node(std::string_view type, const std::vector<Tensor>& inputs, const Texts& attributes, int opset,
                std::string_view domain) {
  OnnxGraph g;
  Texts names;
  std::vector<Tensor> given;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    names.push_back(inputs[i].valid() ? "in" + std::to_string(i) : "");
    if (!inputs[i].valid()) continue;
    Texts dims;
    for (auto d : inputs[i].shape()) dims.push_back(std::to_string(d));
    // The first input is the model's, the others are constants, as in most models.
    if (i == 0) {
      g.input(names.back(), inputs[i].element_type(), dims);
      given.push_back(inputs[i]);
    } else {
      g.initializer(names.back(), inputs[i]);
    }
  }
  g.node(type, names, {"y"}, attributes, "n", domain).output("y");
  const auto loaded = read_onnx_bytes(onnx_model(g, opset));
  if (!loaded.unsupported.empty()) throw std::runtime_error("not supported: " + loaded.unsupported[0].reason);
  return interpret(loaded.graph, given).at(0);
}

}  // namespace lamina::testing
