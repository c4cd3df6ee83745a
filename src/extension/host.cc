/// The engine's functions as libraries call them: nothing may be thrown from here.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/parallel.h"
#include "extension/attribute_text.h"
#include "extension/border.h"
#include "extension/registrar.h"

namespace lamina {
namespace {

lamina_status failed(lamina_context* context, std::string text) {
  context->fail(std::move(text));
  return LAMINA_FAILED;
}

/// What f does, and why it failed.
template <class F>
lamina_status guarded_by(lamina_context* context, const F& f) {
  if (!context) return LAMINA_FAILED;
  try {
    return f();
  } catch (const std::exception& e) {
    return failed(context, e.what());
  } catch (...) {
    return failed(context, "an exception of unknown type");
  }
}

lamina_status fail_with(lamina_context* context, const char* text) {
  return guarded_by(context, [&] { return failed(context, text ? text : "no reason given"); });
}

/// The value of an attribute by name and kind, handed to `give`.
template <class F>
lamina_status get(lamina_context* context, const char* name, std::int32_t kind, const F& give) {
  return guarded_by(context, [&] {
    const auto* found = context->op && name ? context->op->find(name, kind) : nullptr;
    if (!found)
      return failed(context, fmt::format("asks for an attribute \"{}\" that is {}, which is not declared",
                                         name ? name : "", name_of_kind(kind)));
    give(*found);
    return static_cast<lamina_status>(LAMINA_OK);
  });
}

lamina_status get_bool(lamina_context* c, const char* name, std::int32_t* value) {
  return get(c, name, LAMINA_BOOL, [&](const auto& v) { *value = std::get<bool>(v.value) ? 1 : 0; });
}
lamina_status get_int(lamina_context* c, const char* name, std::int64_t* value) {
  return get(c, name, LAMINA_INT, [&](const auto& v) { *value = std::get<std::int64_t>(v.value); });
}
lamina_status get_float(lamina_context* c, const char* name, double* value) {
  return get(c, name, LAMINA_FLOAT, [&](const auto& v) { *value = std::get<double>(v.value); });
}
lamina_status get_string(lamina_context* c, const char* name, const char** value) {
  return get(c, name, LAMINA_STRING, [&](const auto& v) { *value = std::get<std::string>(v.value).c_str(); });
}
lamina_status get_ints(lamina_context* c, const char* name, const std::int64_t** values, std::size_t* count) {
  return get(c, name, LAMINA_INTS, [&](const auto& v) {
    *values = std::get<Ints>(v.value).data();
    *count = std::get<Ints>(v.value).size();
  });
}
lamina_status get_floats(lamina_context* c, const char* name, const double** values, std::size_t* count) {
  return get(c, name, LAMINA_FLOATS, [&](const auto& v) {
    *values = std::get<Floats>(v.value).data();
    *count = std::get<Floats>(v.value).size();
  });
}
lamina_status get_strings(lamina_context* c, const char* name, const char* const** values,
                          std::size_t* count) {
  return get(c, name, LAMINA_STRINGS, [&](const auto& v) {
    *values = v.texts.data();
    *count = v.texts.size();
  });
}
lamina_status get_tensor(lamina_context* c, const char* name, const lamina_tensor** value) {
  return get(c, name, LAMINA_TENSOR, [&](const auto& v) { *value = &v.tensor; });
}

Dim dim_of(const lamina_context& context, const lamina_value& value, std::size_t i) {
  const auto low = value.low[i], high = value.high[i];
  if (low < 0 || low > high) fail(ErrorCode::extension, "axis {} has the bounds {} and {}", i, low, high);
  const auto symbol = value.symbols ? value.symbols[i] : 0;
  if (low == high || symbol == 0 || symbol > context.symbols.size()) return Dim(low, high);
  return Dim::named(context.symbols[symbol - 1], low, high);
}

lamina_status set_output(lamina_context* context, std::size_t output, const lamina_value* value) {
  return guarded_by(context, [&] {
    if (!context->infers) return failed(context, "set_output is for infer()");
    Strings ignored;
    const auto v = taken(value, "the value of set_output", ignored);
    const auto element = type_of_border(v.type);
    if (element == ElementType::undefined)
      return failed(context, fmt::format("output {}: there is no element type {}", output, v.type));
    constexpr std::int32_t kMostAxes = 64;
    if (v.rank < -1 || v.rank > kMostAxes || (v.rank > 0 && (!v.low || !v.high)))
      return failed(context, fmt::format("output {}: {} axes", output, v.rank));
    TensorType type{element, {}};
    if (v.rank >= 0) {
      std::vector<Dim> dims;
      for (std::int32_t i = 0; i < v.rank; ++i)
        dims.push_back(dim_of(*context, v, static_cast<std::size_t>(i)));
      type.shape = Shape(std::move(dims));
    }
    if (output < context->outputs.size()) context->outputs[output] = std::move(type);  // others are not read
    return static_cast<lamina_status>(LAMINA_OK);
  });
}

void* allocate_output(lamina_context* context, std::size_t output, std::int32_t rank,
                      const std::int64_t* dims) {
  void* memory = nullptr;
  guarded_by(context, [&] {
    if (!context->allocate)
      return failed(context, "allocate_output is for shapes that are known after a run");
    if (rank < 0 || rank > 64 || (rank > 0 && !dims))
      return failed(context, fmt::format("allocate_output: {} axes", rank));
    memory = context->allocate(output, Dims(dims, dims + rank));
    return static_cast<lamina_status>(LAMINA_OK);
  });
  return memory;
}

lamina_status run_parallel(lamina_context* context, std::int64_t count, std::int64_t grain,
                           void (*body)(void*, std::int64_t, std::int64_t, std::int32_t), void* data) {
  return guarded_by(context, [&] {
    if (!body) return failed(context, "parallel_for: body is null");
    std::atomic<bool> stop = false;
    parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
      if (stop.load(std::memory_order_relaxed)) return;
      const KeepsRounding keeps(context->rounding_changed);
      try {
        body(data, begin, end, static_cast<std::int32_t>(slot));
      } catch (const std::exception& e) {
        context->fail(std::string("threw an exception: ") + e.what());
        stop = true;
      } catch (...) {
        context->fail("threw an exception that is no std::exception");
        stop = true;
      }
    });
    return static_cast<lamina_status>(context->failed ? LAMINA_FAILED : LAMINA_OK);
  });
}

std::int32_t thread_count(lamina_context*) { return threads_here(); }

lamina_function query(const char* name);

template <class F>
lamina_function function(F* f) {
  return reinterpret_cast<lamina_function>(f);
}

const lamina_host kHost{sizeof(lamina_host),
                        "lamina " LAMINA_VERSION,
                        query,
                        registrar_describe,
                        registrar_add_operation,
                        registrar_add_rule,
                        fail_with,
                        get_bool,
                        get_int,
                        get_float,
                        get_string,
                        get_ints,
                        get_floats,
                        get_strings,
                        get_tensor,
                        set_output,
                        allocate_output,
                        run_parallel,
                        thread_count};

lamina_function query(const char* name) {
  if (!name) return nullptr;
  const std::pair<std::string_view, lamina_function> all[] = {
      {"engine", function(query)},  // a text
      {"query", function(query)},
      {"describe", function(registrar_describe)},
      {"add_operation", function(registrar_add_operation)},
      {"add_rule", function(registrar_add_rule)},
      {"fail", function(fail_with)},
      {"get_bool", function(get_bool)},
      {"get_int", function(get_int)},
      {"get_float", function(get_float)},
      {"get_string", function(get_string)},
      {"get_ints", function(get_ints)},
      {"get_floats", function(get_floats)},
      {"get_strings", function(get_strings)},
      {"get_tensor", function(get_tensor)},
      {"set_output", function(set_output)},
      {"allocate_output", function(allocate_output)},
      {"parallel_for", function(run_parallel)},
      {"thread_count", function(thread_count)}};
  for (const auto& [known, address] : all)
    if (known == name) return address;
  return is_member(name) ? function(query) : nullptr;
}

}  // namespace

const lamina_host& extension_host() { return kHost; }

}  // namespace lamina
