/// Nothing is thrown out of lamina/c.h: what is thrown inside becomes a status and a text.
#include "base/guard.h"

#include <cstring>
#include <functional>
#include <new>
#include <stdexcept>

#include "c_interface/call.h"
#include "lamina/c.h"
#include "tests/api/small_models.h"

namespace lamina::c_interface {
namespace {

using namespace testing;

/// Handles of all kinds.
struct Handles {
  Handles() {
    const auto ir = sums();
    const auto text = ir.text();
    lamina_c_model_bytes bytes{};
    bytes.size = sizeof bytes;
    bytes.model = text.data();
    bytes.model_bytes = text.size();
    good(lamina_c_model_from_memory(&bytes, nullptr, &model));
    good(lamina_c_compile(model, nullptr, &compiled));
    good(lamina_c_request_new(compiled, &request));
    const std::int64_t dims[] = {2, 4};
    good(lamina_c_tensor_new(LAMINA_C_F32, 2, dims, &tensor));
    good(lamina_c_options_new(&options));
    for (const std::size_t i : {0, 1}) good(lamina_c_request_set_input(request, i, tensor));
    good(lamina_c_request_run(request));
  }
  ~Handles() {
    lamina_c_options_free(options);
    lamina_c_tensor_free(tensor);
    lamina_c_request_free(request);
    lamina_c_compiled_free(compiled);
    lamina_c_model_free(model);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  static void good(lamina_c_status status) { ASSERT_EQ(status, LAMINA_C_OK) << lamina_c_last_error(); }

  lamina_c_model* model = nullptr;
  lamina_c_compiled* compiled = nullptr;
  lamina_c_request* request = nullptr;
  lamina_c_tensor* tensor = nullptr;
  lamina_c_options* options = nullptr;
};

/// Calls that go through an entry of the C++ interface. Handles that they make are not made.
const std::vector<std::pair<const char*, std::function<lamina_c_status(Handles&)>>>& calls() {
  static lamina_c_list* list;
  static lamina_c_tensor* made;
  static const std::int64_t dims[] = {2, 4};
  static std::size_t number;
  static std::int32_t answer;
  static const std::vector<std::pair<const char*, std::function<lamina_c_status(Handles&)>>> all{
      {"shutdown", [](Handles&) { return lamina_c_shutdown(); }},
      {"register_extension",
       [](Handles&) {
         return lamina_c_register_extension("c_guarded",
                                            [](const lamina_host*, lamina_registrar*) { return 0; });
       }},
      {"element_count", [](Handles&) { return lamina_c_element_count(2, dims, &number); }},
      {"tensor_new", [](Handles&) { return lamina_c_tensor_new(LAMINA_C_F32, 2, dims, &made); }},
      {"tensor_borrow",
       [](Handles&) {
         static float data[8];
         return lamina_c_tensor_borrow(LAMINA_C_F32, 2, dims, data, sizeof data, nullptr, nullptr, &made);
       }},
      {"tensor_share", [](Handles& h) { return lamina_c_tensor_share(h.tensor, &made); }},
      {"tensor_clone", [](Handles& h) { return lamina_c_tensor_clone(h.tensor, &made); }},
      {"tensor_reshape", [](Handles& h) { return lamina_c_tensor_reshape(h.tensor, 2, dims, &made); }},
      {"tensor_align", [](Handles& h) { return lamina_c_tensor_align(h.tensor, &made); }},
      {"tensor_text", [](Handles& h) { return lamina_c_tensor_text(h.tensor, nullptr, 0, &number); }},
      {"options_set", [](Handles& h) { return lamina_c_options_set(h.options, "PERF_COUNT", "NO"); }},
      {"options_properties", [](Handles& h) { return lamina_c_options_properties(h.options, &list); }},
      {"option_list", [](Handles&) { return lamina_c_option_list(&list); }},
      {"model_read",
       [](Handles&) {
         static lamina_c_model* model;
         return lamina_c_model_read("no/such/model.onnx", nullptr, &model);
       }},
      {"model_metadata", [](Handles& h) { return lamina_c_model_metadata(h.model, &list); }},
      {"model_warnings", [](Handles& h) { return lamina_c_model_warnings(h.model, &list); }},
      {"model_unsupported", [](Handles& h) { return lamina_c_model_unsupported(h.model, &list); }},
      {"compile",
       [](Handles& h) {
         static lamina_c_compiled* compiled;
         return lamina_c_compile(h.model, h.options, &compiled);
       }},
      {"compiled_property",
       [](Handles& h) { return lamina_c_compiled_property(h.compiled, "NUM_STREAMS", nullptr, 0, &number); }},
      {"compiled_properties", [](Handles& h) { return lamina_c_compiled_properties(h.compiled, &list); }},
      {"compiled_fusions", [](Handles& h) { return lamina_c_compiled_fusions(h.compiled, &list); }},
      {"compiled_explain",
       [](Handles& h) {
         const int64_t sizes[] = {2, 4};
         const int64_t* shapes[] = {sizes, sizes};
         const size_t ranks[] = {2, 2};
         return lamina_c_compiled_explain(h.compiled, 2, ranks, shapes, nullptr, 0, &number);
       }},
      {"compiled_save", [](Handles& h) { return lamina_c_compiled_save(h.compiled, "/no/such/folder/x"); }},
      {"compiled_call",
       [](Handles& h) {
         static lamina_c_tensor* outputs[2];
         const lamina_c_tensor* inputs[] = {h.tensor, h.tensor};
         return lamina_c_compiled_call(h.compiled, inputs, 2, outputs, 2);
       }},
      {"request_new",
       [](Handles& h) {
         static lamina_c_request* request;
         return lamina_c_request_new(h.compiled, &request);
       }},
      {"request_set_input", [](Handles& h) { return lamina_c_request_set_input(h.request, 0, h.tensor); }},
      {"request_set_output", [](Handles& h) { return lamina_c_request_set_output(h.request, 0, nullptr); }},
      {"request_run", [](Handles& h) { return lamina_c_request_run(h.request); }},
      {"request_run_for", [](Handles& h) { return lamina_c_request_run_for(h.request, 1L << 60); }},
      {"request_start", [](Handles& h) { return lamina_c_request_start(h.request); }},
      {"request_wait", [](Handles& h) { return lamina_c_request_wait(h.request); }},
      {"request_wait_for", [](Handles& h) { return lamina_c_request_wait_for(h.request, 0, &answer); }},
      {"request_set_callback",
       [](Handles& h) {
         return lamina_c_request_set_callback(
             h.request, [](void*, lamina_c_status, const char*) { return std::int32_t{0}; }, nullptr,
             nullptr);
       }},
      {"request_set_profile", [](Handles& h) { return lamina_c_request_set_profile(h.request, 0); }},
      {"request_counters", [](Handles& h) { return lamina_c_request_counters(h.request, &list); }},
      {"request_layer_times", [](Handles& h) { return lamina_c_request_layer_times(h.request, &list); }},
      {"request_output", [](Handles& h) { return lamina_c_request_output(h.request, 0, &made); }},
      {"request_take_output", [](Handles& h) { return lamina_c_request_take_output(h.request, 0, &made); }},
      {"request_variable", [](Handles& h) { return lamina_c_request_variable(h.request, "v", &made); }},
      {"request_reset_state", [](Handles& h) { return lamina_c_request_reset_state(h.request); }},
      {"request_memory", [](Handles& h) { return lamina_c_request_memory(h.request, &number); }},
  };
  return all;
}

TEST(CGuard, every_exception_becomes_a_status) {
  Handles handles;
  const std::tuple<const char*, EntryHook, lamina_c_status> kinds[] = {
      {"bad_alloc", [](std::string_view) { throw std::bad_alloc(); }, LAMINA_C_OUT_OF_MEMORY},
      {"length_error", [](std::string_view) { throw std::length_error("long"); }, LAMINA_C_INTERNAL},
      {"int", [](std::string_view) { throw 7; }, LAMINA_C_INTERNAL},
      {"Error", [](std::string_view) { throw Error(ErrorCode::unsupported, "as it is"); },
       LAMINA_C_UNSUPPORTED},
  };
  for (const auto& [kind, hook, wanted] : kinds)
    for (const auto& [name, f] : calls()) {
      entry_hook = hook;
      const auto status = f(handles);
      entry_hook = nullptr;
      EXPECT_EQ(status, wanted) << name << " throws " << kind;
      EXPECT_STRNE(lamina_c_last_error(), "") << name;
      EXPECT_EQ(std::strchr(lamina_c_last_error(), '\n'), nullptr);
    }
  // Nothing is broken by it.
  EXPECT_EQ(lamina_c_request_run(handles.request), LAMINA_C_OK) << lamina_c_last_error();
}

TEST(CGuard, outside_of_every_entry) {
  EXPECT_EQ(call("f", [] { throw std::bad_alloc(); }), LAMINA_C_OUT_OF_MEMORY);
  EXPECT_STREQ(lamina_c_last_error(), "f: out of memory");
  EXPECT_EQ(call("f", [] { throw std::out_of_range("far"); }), LAMINA_C_INTERNAL);
  EXPECT_STREQ(lamina_c_last_error(), "f: far");
  EXPECT_EQ(call("f", [] { throw 7; }), LAMINA_C_INTERNAL);
  EXPECT_STREQ(lamina_c_last_error(), "f: an exception of unknown type");
  EXPECT_EQ(call("f", [] { throw std::runtime_error(std::string(50000, 'x')); }), LAMINA_C_INTERNAL);
  EXPECT_LT(std::strlen(lamina_c_last_error()), 6144u);
  EXPECT_EQ(call("f", [] {}), LAMINA_C_OK);
}

TEST(CGuard, each_code_has_its_status) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::over_limit); ++code) {
    const auto status = status_of(static_cast<ErrorCode>(code));
    EXPECT_GT(status, LAMINA_C_OK);
    for (int other = 0; other < code; ++other) EXPECT_NE(status, status_of(static_cast<ErrorCode>(other)));
  }
}

/// A C++ program may throw through its callbacks, although it must not.
TEST(CGuard, exceptions_of_callbacks) {
  Handles handles;
  ASSERT_EQ(lamina_c_request_set_callback(
                handles.request, [](void*, lamina_c_status, const char*) -> std::int32_t { throw 7; },
                nullptr, nullptr),
            LAMINA_C_OK);
  ASSERT_EQ(lamina_c_request_start(handles.request), LAMINA_C_OK);
  EXPECT_EQ(lamina_c_request_wait(handles.request), LAMINA_C_CALLBACK);
  EXPECT_STREQ(lamina_c_last_error(), "the request's callback threw an exception");
  lamina_c_compiled* compiled = nullptr;
  lamina_c_options_set_log(
      handles.options, [](void*, std::int32_t, const char*) { throw 7; }, nullptr, nullptr);
  lamina_c_options_set_progress(
      handles.options, [](void*, const char*, double) -> std::int32_t { throw 7; }, nullptr, nullptr);
  EXPECT_EQ(lamina_c_compile(handles.model, handles.options, &compiled), LAMINA_C_CALLBACK);
  EXPECT_STREQ(lamina_c_last_error(), "the progress callback threw an exception");
  EXPECT_EQ(compiled, nullptr);
}

}  // namespace
}  // namespace lamina::c_interface
