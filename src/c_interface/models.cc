#include <span>

#include "c_interface/handles.h"
#include "c_interface/lent.h"
#include "c_interface/structs.h"
#include "c_interface/tensors.h"

namespace lamina::c_interface {
namespace {

/// Throws Error(bad_input) for two shapes of one input.
NamedShapes input_shapes_of(const lamina_c_input_shape* shapes, std::size_t count) {
  NamedShapes out;
  if (count != 0) argument(shapes, "input_shapes");
  for (std::size_t i = 0; i < count; ++i) {
    const auto given = taken_from(shapes, i, "lamina_c_input_shape");
    const auto dims = dims_of(given.rank, given.dims);
    PartialShape shape(dims.begin(), dims.end());
    if (given.most != nullptr)
      for (std::size_t k = 0; k < shape.size(); ++k) shape[k] = Dimension(dims[k], given.most[k]);
    const auto name = text_argument(given.name, "the name of an input");
    if (!out.emplace(name, std::move(shape)).second)
      fail(ErrorCode::bad_input, "input_shapes: two shapes for \"{}\"", name);
  }
  return out;
}

ReadOptions read_options_of(const lamina_c_read_options* given) {
  ReadOptions out;
  if (given == nullptr) return out;
  const auto options = taken(given, "lamina_c_read_options");
  out.settable = texts_of(options.settable, options.settable_count, "settable");
  out.extensions = texts_of(options.extensions, options.extension_count, "extensions");
  if (options.weights != nullptr) out.weights = options.weights;
  if (options.limits != nullptr) out.limits = options.limits->options.limits;
  if (options.stop != nullptr) out.stop = options.stop->source.get_token();
  out.input_shapes = input_shapes_of(options.input_shapes, options.input_shape_count);
  return out;
}

std::span<const std::byte> span_of(const void* data, std::size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

ModelBytes model_bytes_of(const lamina_c_model_bytes& given) {
  ModelBytes out{.model = span_of(given.model, given.model_bytes),
                 .weights = span_of(given.weights, given.weights_bytes)};
  if (given.external_count != 0) argument(given.external_data, "external_data");
  for (std::size_t i = 0; i < given.external_count; ++i) {
    const auto file = taken_from(given.external_data, i, "lamina_c_external_data");
    out.external_data[text_argument(file.location, "location")] = span_of(file.data, file.bytes);
  }
  if (given.name != nullptr) out.name = given.name;
  return out;
}

}  // namespace
}  // namespace lamina::c_interface

using namespace lamina;
using namespace lamina::c_interface;

lamina_c_status lamina_c_model_read(const char* path, const lamina_c_read_options* options,
                                    lamina_c_model** model) {
  return call_making("lamina_c_model_read", model, [&] {
    return std::make_unique<lamina_c_model>(Model(text_argument(path, "the path"), read_options_of(options)));
  });
}

lamina_c_status lamina_c_model_from_memory(const lamina_c_model_bytes* bytes,
                                           const lamina_c_read_options* options, lamina_c_model** model) {
  return call_making("lamina_c_model_from_memory", model, [&] {
    const auto given = taken(bytes, "lamina_c_model_bytes");
    auto parts = model_bytes_of(given);
    const auto owner = lent(given.release, given.user);
    if (given.release != nullptr) parts.owner = owner;
    auto handle = std::make_unique<lamina_c_model>(Model::from_memory(parts, read_options_of(options)));
    owner->take();
    return handle;
  });
}

lamina_c_status lamina_c_model_port_count(const lamina_c_model* model, int32_t kind, size_t* count) {
  return call("lamina_c_model_port_count", [&] {
    argument(count, "where to put the number of ports") = object(model, "model").ports.of(kind).size();
  });
}
lamina_c_status lamina_c_model_port(const lamina_c_model* model, int32_t kind, size_t index,
                                    lamina_c_port* port) {
  return call("lamina_c_model_port", [&] { object(model, "model").ports.of(kind).show(index, port); });
}
lamina_c_status lamina_c_model_find(const lamina_c_model* model, int32_t kind, const char* name,
                                    size_t* index) {
  return call("lamina_c_model_find", [&] {
    argument(index, "where to put the index") =
        object(model, "model").ports.of(kind).find(text_argument(name, "the name"));
  });
}
lamina_c_status lamina_c_model_format(const lamina_c_model* model, const char** format) {
  return call("lamina_c_model_format", [&] {
    argument(format, "where to put the format") = object(model, "model").model.format().c_str();
  });
}
lamina_c_status lamina_c_model_metadata(const lamina_c_model* model, lamina_c_list** list) {
  return call_making("lamina_c_model_metadata", list, [&] {
    const auto& metadata = object(model, "model").model.metadata();
    return list_of(lamina_c_list::Entries(metadata.begin(), metadata.end()));
  });
}
lamina_c_status lamina_c_model_warnings(const lamina_c_model* model, lamina_c_list** list) {
  return call_making("lamina_c_model_warnings", list,
                     [&] { return list_of(object(model, "model").model.warnings()); });
}
lamina_c_status lamina_c_model_unsupported(const lamina_c_model* model, lamina_c_list** list) {
  return call_making("lamina_c_model_unsupported", list,
                     [&] { return list_of(object(model, "model").model.unsupported()); });
}
lamina_c_status lamina_c_model_output_ports(const lamina_c_model* model, const lamina_c_input_shape* shapes,
                                            size_t count, lamina_c_list** list) {
  return call_making("lamina_c_model_output_ports", list, [&] {
    return list_of(Ports(object(model, "model").model.output_ports(input_shapes_of(shapes, count))));
  });
}

void lamina_c_model_free(lamina_c_model* model) { delete model; }
