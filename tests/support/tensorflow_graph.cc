#include "tests/support/tensorflow_graph.h"

#include <protozero/pbf_writer.hpp>

#include "interpreter/interpreter.h"
#include "lamina/error.h"
#include "tests/support/kept_models.h"

namespace lamina::testing::tf {
namespace {

using protozero::pbf_writer;

void add(pbf_writer& out, protozero::pbf_tag_type field, std::string_view bytes) {
  out.add_bytes(field, bytes.data(), bytes.size());
}

template <class F>
Attr attribute(std::string_view name, F fill) {
  std::string bytes;
  pbf_writer out(bytes);
  fill(out);
  return {std::string(name), bytes};
}

std::string shape_proto(const std::vector<std::int64_t>& sizes) {
  std::string bytes;
  pbf_writer out(bytes);
  for (auto size : sizes) {
    pbf_writer dim(out, 2);
    dim.add_int64(1, size);
  }
  return bytes;
}

std::int64_t type_of(ElementType type) {
  switch (type) {
    case ElementType::i32:
      return 3;
    case ElementType::i64:
      return 9;
    case ElementType::boolean:
      return 10;
    default:
      return 1;
  }
}

}  // namespace

Attr integer(std::string_view name, std::int64_t value) {
  return attribute(name, [&](pbf_writer& out) { out.add_int64(3, value); });
}
Attr number(std::string_view name, float value) {
  return attribute(name, [&](pbf_writer& out) { out.add_float(4, value); });
}
Attr flag(std::string_view name, bool value) {
  return attribute(name, [&](pbf_writer& out) { out.add_bool(5, value); });
}
Attr word(std::string_view name, std::string_view value) {
  return attribute(name, [&](pbf_writer& out) { add(out, 2, value); });
}
Attr type(std::string_view name, std::int64_t number) {
  return attribute(name, [&](pbf_writer& out) { out.add_int64(6, number); });
}
Attr list(std::string_view name, const std::vector<std::int64_t>& values) {
  return attribute(name, [&](pbf_writer& out) {
    pbf_writer inner(out, 1);
    inner.add_packed_int64(3, values.begin(), values.end());
  });
}
Attr shape(std::string_view name, const std::vector<std::int64_t>& sizes) {
  return attribute(name, [&](pbf_writer& out) { add(out, 7, shape_proto(sizes)); });
}
Attr function(std::string_view name, std::string_view of) {
  return attribute(name, [&](pbf_writer& out) {
    pbf_writer inner(out, 10);
    add(inner, 1, of);
  });
}
Attr tensor(std::string_view name, std::string_view bytes) {
  return attribute(name, [&](pbf_writer& out) { add(out, 8, bytes); });
}

std::string tensor_proto(const Tensor& tensor) {
  std::string bytes;
  pbf_writer out(bytes);
  out.add_int64(1, type_of(tensor.element_type()));
  add(out, 2, shape_proto(tensor.shape()));
  add(out, 4, {reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()});
  return bytes;
}

std::string repeated_float(const std::vector<std::int64_t>& sizes, const std::vector<float>& values) {
  std::string bytes;
  pbf_writer out(bytes);
  out.add_int64(1, 1);
  add(out, 2, shape_proto(sizes));
  for (auto v : values) out.add_float(5, v);
  return bytes;
}

std::string node(std::string_view op, std::string_view name, const Texts& inputs,
                 const std::vector<Attr>& attributes) {
  std::string bytes;
  pbf_writer out(bytes);
  add(out, 1, name);
  add(out, 2, op);
  for (const auto& input : inputs) add(out, 3, input);
  for (const auto& [key, value] : attributes) {
    pbf_writer entry(out, 5);
    add(entry, 1, key);
    add(entry, 2, value);
  }
  return bytes;
}

TensorflowGraph& TensorflowGraph::node(std::string_view op, std::string_view name, const Texts& inputs,
                                       const std::vector<Attr>& attributes) {
  pbf_writer out(nodes_);
  add(out, 1, tf::node(op, name, inputs, attributes));
  return *this;
}

TensorflowGraph& TensorflowGraph::input(std::string_view name, const std::vector<std::int64_t>& sizes,
                                        std::int64_t type) {
  return node("Placeholder", name, {}, {tf::type("dtype", type), shape("shape", sizes)});
}

TensorflowGraph& TensorflowGraph::constant(std::string_view name, const Tensor& value) {
  return node("Const", name, {},
              {type("dtype", type_of(value.element_type())), tensor("value", tensor_proto(value))});
}

TensorflowGraph& TensorflowGraph::function(std::string_view name, const Texts& inputs, const Texts& nodes,
                                           const std::vector<std::pair<std::string, std::string>>& results) {
  pbf_writer library(functions_);
  pbf_writer out(library, 1);
  {
    pbf_writer signature(out, 1);
    add(signature, 1, name);
    for (const auto& input : inputs) {
      pbf_writer argument(signature, 2);
      add(argument, 1, input);
    }
    for (const auto& [output, from] : results) {
      pbf_writer argument(signature, 3);
      add(argument, 1, output);
    }
  }
  for (const auto& n : nodes) add(out, 3, n);
  for (const auto& [output, from] : results) {
    pbf_writer entry(out, 4);
    add(entry, 1, output);
    add(entry, 2, from);
  }
  return *this;
}

std::string TensorflowGraph::bytes(int producer) const {
  auto all = nodes_;
  pbf_writer out(all);
  if (!functions_.empty()) add(out, 2, functions_);
  pbf_writer versions(out, 4);
  versions.add_int32(1, producer);
  versions.commit();
  return all;
}

Loaded read_bytes(std::string_view bytes, const ReadSettings& settings, const char* name) {
  const TemporaryFolder folder;
  const auto path = folder.file(name);
  write_file(path, bytes);
  auto loaded = read(FileSource(path), settings);
  if (path.ends_with(".pb")) keep_model("pb", bytes);
  return loaded;
}

std::vector<Tensor> run(const TensorflowGraph& graph, const std::vector<Tensor>& inputs) {
  const auto loaded = read_bytes(graph.bytes());
  return interpret(loaded.graph, inputs);
}

std::string refusal(std::string_view bytes, const ReadSettings& settings, const char* name) {
  const TemporaryFolder folder;
  const auto path = folder.file(name);
  write_file(path, bytes);
  try {
    read(FileSource(path), settings);
  } catch (const Error& e) {
    std::string what = e.what();
    if (what.starts_with(path + ": ")) what.erase(0, path.size() + 2);
    if (what.starts_with(path)) what.erase(0, path.size());
    return what;
  }
  return "";
}

}  // namespace lamina::testing::tf
