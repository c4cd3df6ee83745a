#pragma once
/// How an Explanation is made of a compiled model.
#include "api/at_work.h"
#include "api/compiled.h"
#include "api/preparing.h"
#include "base/exiting.h"
#include "base/once.h"
#include "base/work_bounds.h"
#include "explain/findings.h"
#include "lamina/explain.h"

namespace lamina {

/// What an explanation keeps, from which its functions find out more.
class Explanation::State {
 public:
  explicit State(std::shared_ptr<const Compiled> of) : compiled(std::move(of)) {}
  ~State() { keep_at_exit(compiled); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const std::shared_ptr<const Compiled> compiled;
  std::vector<Tensor> inputs;  ///< the model's own; those without memory stand for their shapes
  Findings all;
  std::string model;
  std::vector<std::string> command_options;
  bool described = false;  ///< the plans are for a machine that a file describes
  std::stop_token stop;

  /// Found out once.
  const ModelVerdict& verdict() const;

 private:
  mutable Once judged_;
  mutable ModelVerdict verdict_;
};

/// The body, which ends when a stop is requested, within the model's limits.
template <class F>
decltype(auto) explaining(const Compiled& compiled, const std::stop_token& token, F&& body) {
  const AtWork here;
  const TokenSignal stop(token);
  return run_stoppable({.signal = &stop, .what = "the explanation"}, [&]() -> decltype(auto) {
    stop_point();
    const Within within(&compiled.bounds());
    return std::forward<F>(body)();
  });
}

class Explaining {
 public:
  /// Throws Error(bad_call) for an explanation that was not made here.
  static const Explanation::State& state_of(const Explanation& explanation);
  /// `compiled`: not loaded from a compiled file or a cache, which do not hold what was chosen and why.
  /// `described`: it was compiled for a machine that a file describes.
  static Explanation of(const std::shared_ptr<const Compiled>& compiled, const ExplainOptions& options,
                        bool described);
};

}  // namespace lamina
