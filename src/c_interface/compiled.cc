#include "c_interface/handles.h"
#include "c_interface/structs.h"
#include "c_interface/tensors.h"
#include "lamina/explain.h"

using namespace lamina;
using namespace lamina::c_interface;

lamina_c_status lamina_c_compile(const lamina_c_model* model, const lamina_c_options* options,
                                 lamina_c_compiled** compiled) {
  return call_making("lamina_c_compile", compiled, [&] {
    const auto& of = object(model, "model").model;
    return std::make_unique<lamina_c_compiled>(options == nullptr ? CompiledModel(of)
                                                                  : CompiledModel(of, options->options));
  });
}

lamina_c_status lamina_c_compiled_port_count(const lamina_c_compiled* compiled, int32_t kind, size_t* count) {
  return call("lamina_c_compiled_port_count", [&] {
    argument(count, "where to put the number of ports") =
        object(compiled, "compiled model").ports.of(kind).size();
  });
}
lamina_c_status lamina_c_compiled_port(const lamina_c_compiled* compiled, int32_t kind, size_t index,
                                       lamina_c_port* port) {
  return call("lamina_c_compiled_port",
              [&] { object(compiled, "compiled model").ports.of(kind).show(index, port); });
}
lamina_c_status lamina_c_compiled_find(const lamina_c_compiled* compiled, int32_t kind, const char* name,
                                       size_t* index) {
  return call("lamina_c_compiled_find", [&] {
    argument(index, "where to put the index") =
        object(compiled, "compiled model").ports.of(kind).find(text_argument(name, "the name"));
  });
}

lamina_c_status lamina_c_compiled_output_ports(const lamina_c_compiled* compiled, size_t count,
                                               const size_t* ranks, const int64_t* const* dims,
                                               lamina_c_list** list) {
  return call_making("lamina_c_compiled_output_ports", list, [&] {
    const auto& of = object(compiled, "compiled model").compiled;
    return list_of(Ports(of.output_ports(shapes_of(of.inputs().size(), count, ranks, dims))));
  });
}

lamina_c_status lamina_c_compiled_plan(const lamina_c_compiled* compiled, size_t count, const size_t* ranks,
                                       const int64_t* const* dims) {
  return call("lamina_c_compiled_plan", [&] {
    const auto& of = object(compiled, "compiled model").compiled;
    of.plan(shapes_of(of.inputs().size(), count, ranks, dims));
  });
}

lamina_c_status lamina_c_compiled_get(const lamina_c_compiled* compiled, lamina_c_compiled_info* info) {
  return call("lamina_c_compiled_get", [&] {
    const auto& of = object(compiled, "compiled model").compiled;
    lamina_c_compiled_info out{};
    out.streams = of.streams();
    out.threads = of.threads();
    out.optimal_requests = of.optimal_requests();
    out.weight_memory = of.weight_memory();
    out.plans = of.plans();
    give(info, out, "lamina_c_compiled_info");
  });
}

lamina_c_status lamina_c_compiled_property(const lamina_c_compiled* compiled, const char* key, char* buffer,
                                           size_t capacity, size_t* length) {
  return call("lamina_c_compiled_property", [&] {
    const auto& of = object(compiled, "compiled model").compiled;
    copy_text(of.property(text_argument(key, "the key")), buffer, capacity, length);
  });
}
lamina_c_status lamina_c_compiled_properties(const lamina_c_compiled* compiled, lamina_c_list** list) {
  return call_making("lamina_c_compiled_properties", list,
                     [&] { return list_of(object(compiled, "compiled model").compiled.properties()); });
}
lamina_c_status lamina_c_compiled_fusions(const lamina_c_compiled* compiled, lamina_c_list** list) {
  return call_making("lamina_c_compiled_fusions", list,
                     [&] { return list_of(object(compiled, "compiled model").compiled.fusions()); });
}
lamina_c_status lamina_c_compiled_explain(const lamina_c_compiled* compiled, size_t count,
                                          const size_t* ranks, const int64_t* const* dims, char* buffer,
                                          size_t capacity, size_t* length) {
  return call("lamina_c_compiled_explain", [&] {
    const auto& of = object(compiled, "compiled model").compiled;
    ExplainOptions options;
    if (count != 0) options.shapes = shapes_of(of.inputs().size(), count, ranks, dims);
    copy_text(explain(of, options).json(), buffer, capacity, length);
  });
}
lamina_c_status lamina_c_compiled_save(const lamina_c_compiled* compiled, const char* path) {
  return call("lamina_c_compiled_save",
              [&] { object(compiled, "compiled model").compiled.save(text_argument(path, "the path")); });
}

lamina_c_status lamina_c_compiled_call(const lamina_c_compiled* compiled,
                                       const lamina_c_tensor* const* inputs, size_t input_count,
                                       lamina_c_tensor** outputs, size_t output_count) {
  return call("lamina_c_compiled_call", [&] {
    const auto& of = object(compiled, "compiled model").compiled;
    if (output_count != of.outputs().size())
      fail(ErrorCode::bad_input, "room for {} outputs: the model has {}", output_count, of.outputs().size());
    if (input_count != of.inputs().size())
      fail(ErrorCode::bad_input, "{} inputs: the model has {}", input_count, of.inputs().size());
    if (output_count != 0) argument(outputs, "the array of outputs");
    for (std::size_t i = 0; i < output_count; ++i) outputs[i] = nullptr;
    std::vector<Tensor> given;
    for (std::size_t i = 0; i < input_count; ++i)
      given.push_back(tensor_or_none((&argument(inputs, "the array of inputs"))[i]));
    std::vector<std::unique_ptr<lamina_c_tensor>> made;
    for (auto& result : of(given)) made.push_back(handle_of(std::move(result)));
    for (std::size_t i = 0; i < made.size(); ++i) outputs[i] = made[i].release();
  });
}
void lamina_c_compiled_free(lamina_c_compiled* compiled) { delete compiled; }
