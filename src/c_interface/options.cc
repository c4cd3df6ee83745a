#include <algorithm>
#include <array>

#include "api/options_table.h"
#include "c_interface/call.h"
#include "c_interface/handles.h"
#include "c_interface/lent.h"

namespace lamina::c_interface {
namespace {

struct ListOption {
  const char* key;
  std::vector<std::string>& (*field)(Options&);
};
constexpr std::array<ListOption, 5> kLists{{{"DISABLE", [](Options& o) -> auto& {return o.disable;
}  // namespace
}  // namespace lamina::c_interface
, {"EXEMPT", [](Options& o) -> auto& {return o.exempt;
}
}
, {"FORCE", [](Options& o) -> auto& {return o.force;
}
}
, {"ALLOWED_OPERATORS", [](Options& o) -> auto& {return o.limits.allowed_operators;
}
}
, {
  "DENIED_OPERATORS", [](Options & o) -> auto& { return o.limits.denied_operators; }
}
}
}
;

void set_list(Options& options, std::string_view key, std::vector<std::string> values) {
  const auto* const row = find_option(key);
  if (row == nullptr) refuse_key(key);
  const auto* const list =
      std::find_if(kLists.begin(), kLists.end(), [&](const auto& l) { return l.key == row->info.key; });
  if (list == kLists.end())
    fail(ErrorCode::bad_option,
         "{} is no list, wanted DISABLE, EXEMPT, FORCE, ALLOWED_OPERATORS or "
         "DENIED_OPERATORS",
         key);
  options.given.insert(row->info.setting);
  list->field(options) = std::move(values);
}

/// The caller's log. It must not throw: what a C++ program throws through it is dropped.
LogCallback told_to(lamina_c_log log, const std::shared_ptr<Lent>& user) {
  return [log, user](LogLevel level, std::string_view line) {
    try {
      log(user->user(), static_cast<std::int32_t>(level), std::string(line).c_str());
    } catch (...) {
    }
  };
}

ProgressCallback told_to(lamina_c_progress progress, const std::shared_ptr<Lent>& user) {
  return [progress, user](std::string_view stage, double done) {
    const std::string text(stage);
    std::int32_t answer = 0;
    try {
      answer = progress(user->user(), text.c_str(), done);
    } catch (...) {
      throw CallbackFailed("the progress callback threw an exception");
    }
    if (answer != 0) throw CallbackFailed(fmt::format("the progress callback returned {}", answer));
  };
}
static_assert(static_cast<int>(LogLevel::error) == LAMINA_C_LOG_ERROR &&
              static_cast<int>(LogLevel::debug) == LAMINA_C_LOG_DEBUG);

/// Sets a callback of the options, or none where the caller's function is null.
template <class Callback, class F>
void set_callback(Callback& to, F function, lamina_c_release release, void* user) {
  if (function == nullptr) {
    to = {};
    return;
  }
  const auto owner = lent(release, user);
  to = told_to(function, owner);
  owner->take();
}

}  // namespace
}  // namespace lamina::c_interface

using namespace lamina;
using namespace lamina::c_interface;

lamina_c_status lamina_c_stop_new(lamina_c_stop** stop) {
  return call_making("lamina_c_stop_new", stop, [] { return std::make_unique<lamina_c_stop>(); });
}
lamina_c_status lamina_c_stop_request(lamina_c_stop* stop) {
  return call("lamina_c_stop_request", [&] { object(stop, "stop").source.request_stop(); });
}
lamina_c_status lamina_c_stop_requested(const lamina_c_stop* stop, int32_t* requested) {
  return call("lamina_c_stop_requested", [&] {
    argument(requested, "where to put the answer") = object(stop, "stop").source.stop_requested();
  });
}
void lamina_c_stop_free(lamina_c_stop* stop) { delete stop; }

lamina_c_status lamina_c_options_new(lamina_c_options** options) {
  return call_making("lamina_c_options_new", options, [] { return std::make_unique<lamina_c_options>(); });
}
lamina_c_status lamina_c_options_set(lamina_c_options* options, const char* key, const char* value) {
  return call("lamina_c_options_set", [&] {
    object(options, "options object")
        .options.set(text_argument(key, "the key"), text_argument(value, "the value"));
  });
}
lamina_c_status lamina_c_options_set_list(lamina_c_options* options, const char* key,
                                          const char* const* values, size_t count) {
  return call("lamina_c_options_set_list", [&] {
    auto& of = object(options, "options object").options;
    set_list(of, text_argument(key, "the key"), texts_of(values, count, "the list"));
  });
}
lamina_c_status lamina_c_options_set_log(lamina_c_options* options, lamina_c_log log, void* user,
                                         lamina_c_release release) {
  return call("lamina_c_options_set_log",
              [&] { set_callback(object(options, "options object").options.log, log, release, user); });
}
lamina_c_status lamina_c_options_set_progress(lamina_c_options* options, lamina_c_progress progress,
                                              void* user, lamina_c_release release) {
  return call("lamina_c_options_set_progress", [&] {
    set_callback(object(options, "options object").options.progress, progress, release, user);
  });
}
lamina_c_status lamina_c_options_set_stop(lamina_c_options* options, const lamina_c_stop* stop) {
  return call("lamina_c_options_set_stop", [&] {
    object(options, "options object").options.stop =
        stop == nullptr ? std::stop_token() : stop->source.get_token();
  });
}
lamina_c_status lamina_c_options_properties(const lamina_c_options* options, lamina_c_list** list) {
  return call_making("lamina_c_options_properties", list, [&] {
    return list_of(options == nullptr ? properties() : properties(options->options));
  });
}
lamina_c_status lamina_c_option_list(lamina_c_list** list) {
  return call_making("lamina_c_option_list", list, [] { return list_of(option_list()); });
}
void lamina_c_options_free(lamina_c_options* options) { delete options; }
