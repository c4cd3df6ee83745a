#pragma once
/// What stands behind the public Request.
#include <atomic>

#include "api/compiled.h"
#include "api/loaded_model.h"
#include "base/exiting.h"
#include "exec/job.h"
#include "exec/runner.h"

namespace lamina {

class Request::State : public Job {
 public:
  explicit State(std::shared_ptr<const Compiled> compiled);

  void set_input(std::size_t index, Tensor tensor);
  void set_output(std::size_t index, Tensor tensor);
  /// Throws what start() throws itself.
  void check();
  const Tensor& output(std::size_t index) const;
  Tensor take_output(std::size_t index);
  /// Throws Error(busy) unless what belongs to the next inference may be looked at.
  void require_settable() const;
  /// Guards calls that change a request: one call at a time.
  class Change {
   public:
    explicit Change(State& state);
    ~Change() { state_.changing_.store(false, std::memory_order_release); }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    State& state_;
  };

  /// Must be called before the request runs: static objects must outlive other threads' work during exit().
  void notice_exit() noexcept {
    if (!used_.load(std::memory_order_relaxed) && !used_.exchange(true)) lamina::notice_exit();
  }

  Scheduler& scheduler() noexcept override { return compiled->scheduler(); }

  std::shared_ptr<const Compiled> compiled;
  std::vector<Port> inputs, outputs, variables;
  Runner runner;
  bool profiled;

 private:
  void infer(Stream& stream) override;
  void forget_result() noexcept override { runner.forget(); }
  void callback_failed(const std::exception_ptr& error) noexcept override;

  std::atomic<bool> changing_ = false;
  std::atomic<bool> used_{false};
};

}  // namespace lamina
