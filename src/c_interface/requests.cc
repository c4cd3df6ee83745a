#include <chrono>

#include "c_interface/handles.h"
#include "c_interface/lent.h"
#include "c_interface/structs.h"
#include "c_interface/tensors.h"

namespace lamina::c_interface {
namespace {

constexpr const char* kRequest = "request";

/// Calls the caller's function when an inference has ended. What it returns, wait() throws.
std::function<void(std::exception_ptr)> told_to(lamina_c_done callback, const std::shared_ptr<Lent>& user) {
  return [callback, user](const std::exception_ptr& error) {
    const auto failure = failure_of(error);
    std::int32_t answer = 0;
    try {
      answer = callback(user->user(), failure.status, failure.text.c_str());
    } catch (...) {
      throw CallbackFailed("the request's callback threw an exception");
    }
    if (answer != 0) throw CallbackFailed(fmt::format("the request's callback returned {}", answer));
  };
}

std::int32_t number_of(RequestStatus status) noexcept { return static_cast<std::int32_t>(status); }
static_assert(static_cast<int>(RequestStatus::idle) == LAMINA_C_REQUEST_IDLE &&
              static_cast<int>(RequestStatus::queued) == LAMINA_C_REQUEST_QUEUED &&
              static_cast<int>(RequestStatus::running) == LAMINA_C_REQUEST_RUNNING &&
              static_cast<int>(RequestStatus::done) == LAMINA_C_REQUEST_DONE &&
              static_cast<int>(RequestStatus::failed) == LAMINA_C_REQUEST_FAILED &&
              static_cast<int>(RequestStatus::canceled) == LAMINA_C_REQUEST_CANCELED);

}  // namespace
}  // namespace lamina::c_interface

using namespace lamina;
using namespace lamina::c_interface;

lamina_c_status lamina_c_request_new(const lamina_c_compiled* compiled, lamina_c_request** request) {
  return call_making("lamina_c_request_new", request, [&] {
    return std::unique_ptr<lamina_c_request>(
        new lamina_c_request{object(compiled, "compiled model").compiled.create_request()});
  });
}

lamina_c_status lamina_c_request_set_input(lamina_c_request* request, size_t index,
                                           const lamina_c_tensor* tensor) {
  return call("lamina_c_request_set_input",
              [&] { object(request, kRequest).request.set_input(index, tensor_or_none(tensor)); });
}
lamina_c_status lamina_c_request_set_input_named(lamina_c_request* request, const char* name,
                                                 const lamina_c_tensor* tensor) {
  return call("lamina_c_request_set_input_named", [&] {
    object(request, kRequest).request.set_input(text_argument(name, "the name"), tensor_or_none(tensor));
  });
}
lamina_c_status lamina_c_request_set_output(lamina_c_request* request, size_t index,
                                            const lamina_c_tensor* tensor) {
  return call("lamina_c_request_set_output",
              [&] { object(request, kRequest).request.set_output(index, tensor_or_none(tensor)); });
}
lamina_c_status lamina_c_request_set_output_named(lamina_c_request* request, const char* name,
                                                  const lamina_c_tensor* tensor) {
  return call("lamina_c_request_set_output_named", [&] {
    object(request, kRequest).request.set_output(text_argument(name, "the name"), tensor_or_none(tensor));
  });
}

lamina_c_status lamina_c_request_run(lamina_c_request* request) {
  return call("lamina_c_request_run", [&] { object(request, kRequest).request.run(); });
}
lamina_c_status lamina_c_request_run_for(lamina_c_request* request, int64_t nanoseconds) {
  return call("lamina_c_request_run_for",
              [&] { object(request, kRequest).request.run_for(std::chrono::nanoseconds(nanoseconds)); });
}
lamina_c_status lamina_c_request_start(lamina_c_request* request) {
  return call("lamina_c_request_start", [&] { object(request, kRequest).request.start(); });
}
lamina_c_status lamina_c_request_wait(lamina_c_request* request) {
  return call("lamina_c_request_wait", [&] { object(request, kRequest).request.wait(); });
}
lamina_c_status lamina_c_request_wait_for(lamina_c_request* request, int64_t nanoseconds, int32_t* done) {
  return call("lamina_c_request_wait_for", [&] {
    auto& of = object(request, kRequest).request;
    auto& answer = argument(done, "where to put the answer");
    answer = of.wait_for(std::chrono::nanoseconds(nanoseconds));
  });
}
lamina_c_status lamina_c_request_cancel(lamina_c_request* request) {
  return call("lamina_c_request_cancel", [&] { object(request, kRequest).request.cancel(); });
}
lamina_c_status lamina_c_request_set_callback(lamina_c_request* request, lamina_c_done callback, void* user,
                                              lamina_c_release release) {
  return call("lamina_c_request_set_callback", [&] {
    auto& of = object(request, kRequest).request;
    if (callback == nullptr) return of.set_callback({});
    const auto owner = lent(release, user);
    of.set_callback(told_to(callback, owner));
    owner->take();
  });
}
lamina_c_status lamina_c_request_status(const lamina_c_request* request, int32_t* status) {
  return call("lamina_c_request_status", [&] {
    argument(status, "where to put the status") = number_of(object(request, kRequest).request.status());
  });
}
lamina_c_status lamina_c_request_set_profile(lamina_c_request* request, int32_t on) {
  return call("lamina_c_request_set_profile",
              [&] { object(request, kRequest).request.set_profile(on != 0); });
}
lamina_c_status lamina_c_request_counters(const lamina_c_request* request, lamina_c_list** list) {
  return call_making("lamina_c_request_counters", list,
                     [&] { return list_of(object(request, kRequest).request.counters()); });
}
lamina_c_status lamina_c_request_layer_times(const lamina_c_request* request, lamina_c_list** list) {
  return call_making("lamina_c_request_layer_times", list,
                     [&] { return list_of(object(request, kRequest).request.layer_times()); });
}

lamina_c_status lamina_c_request_output(const lamina_c_request* request, size_t index,
                                        lamina_c_tensor** tensor) {
  return call_making("lamina_c_request_output", tensor,
                     [&] { return handle_of(object(request, kRequest).request.output(index)); });
}
lamina_c_status lamina_c_request_output_named(const lamina_c_request* request, const char* name,
                                              lamina_c_tensor** tensor) {
  return call_making("lamina_c_request_output_named", tensor, [&] {
    return handle_of(object(request, kRequest).request.output(text_argument(name, "the name")));
  });
}
lamina_c_status lamina_c_request_take_output(lamina_c_request* request, size_t index,
                                             lamina_c_tensor** tensor) {
  return call_making("lamina_c_request_take_output", tensor,
                     [&] { return handle_of(object(request, kRequest).request.take_output(index)); });
}
lamina_c_status lamina_c_request_take_output_named(lamina_c_request* request, const char* name,
                                                   lamina_c_tensor** tensor) {
  return call_making("lamina_c_request_take_output_named", tensor, [&] {
    return handle_of(object(request, kRequest).request.take_output(text_argument(name, "the name")));
  });
}
lamina_c_status lamina_c_request_read_output(const lamina_c_request* request, size_t index,
                                             lamina_c_tensor_info* info) {
  return call("lamina_c_request_read_output",
              [&] { show(object(request, kRequest).request.output(index), info); });
}

lamina_c_status lamina_c_request_variable(const lamina_c_request* request, const char* name,
                                          lamina_c_tensor** tensor) {
  return call_making("lamina_c_request_variable", tensor, [&] {
    return handle_of(object(request, kRequest).request.variable(text_argument(name, "the name")));
  });
}
lamina_c_status lamina_c_request_set_variable(lamina_c_request* request, const char* name,
                                              const lamina_c_tensor* tensor) {
  return call("lamina_c_request_set_variable", [&] {
    object(request, kRequest)
        .request.set_variable(text_argument(name, "the name"), argument(tensor, "the value").tensor);
  });
}
lamina_c_status lamina_c_request_reset_state(lamina_c_request* request) {
  return call("lamina_c_request_reset_state", [&] { object(request, kRequest).request.reset_state(); });
}
lamina_c_status lamina_c_request_memory(const lamina_c_request* request, size_t* bytes) {
  return call("lamina_c_request_memory", [&] {
    argument(bytes, "where to put the bytes") = object(request, kRequest).request.memory();
  });
}
void lamina_c_request_free(lamina_c_request* request) { delete request; }
