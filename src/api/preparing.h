#pragma once
/// How reading and compiling a model are stopped.
#include <stop_token>

#include "base/cancellation.h"
#include "lamina/limits.h"

namespace lamina {

/// ReadOptions::stop, Options::stop.
class TokenSignal final : public StopSignal {
 public:
  explicit TokenSignal(std::stop_token token) : token_(std::move(token)) {}
  bool stop_requested() const noexcept override { return token_.stop_requested(); }

 private:
  std::stop_token token_;
};

/// The rules that stop reading or compiling: by the signal, and after LIMIT_COMPILE_SECONDS. `what` is the
/// name of the work in errors; it and the signal must outlive the rules.
inline StopRules preparing_rules(std::string_view what, const StopSignal& stop, const ModelLimits& limits) {
  return {.signal = &stop,
          .what = what,
          .seconds = limits.compile_seconds,
          .seconds_key = "LIMIT_COMPILE_SECONDS"};
}

}  // namespace lamina
