#pragma once
/// What stands behind the public Request.
#include <atomic>

#include "api/compiled.h"
#include "api/loaded_model.h"
#include "exec/runner.h"

namespace lamina {

class Request::State {
 public:
  explicit State(const Compiled& compiled);

  void set_input(std::size_t index, Tensor tensor);
  void set_output(std::size_t index, Tensor tensor);
  void run();
  const Tensor& output(std::size_t index) const;

  std::shared_ptr<const Program> program;
  std::vector<Port> inputs, outputs, variables;
  Runner runner;

  /// One call at a time that changes the request; throws Error(bad_call) for a second one.
  class Use {
   public:
    explicit Use(State& state);
    ~Use() { state_.busy_.store(false, std::memory_order_release); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    State& state_;
  };
  /// For calls that only look.
  void require_idle() const;

 private:
  std::atomic<bool> busy_ = false;
};

}  // namespace lamina
