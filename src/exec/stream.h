#pragma once
/// The resources of one inference at a time: threads, the processors that they are bound to, memory for
/// tensors, and bound plans.
#include <tbb/task_scheduler_observer.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/arena.h"
#include "base/placement.h"
#include "base/quiescence.h"
#include "exec/bound_plans.h"
#include "lamina/tensor.h"

namespace lamina {

/// Used by one thread at a time.
class Stream : public Activity {
 public:
  Stream(StreamPlace place, int threads, Binding binding);
  ~Stream() override;

  int threads() const { return threads_; }
  const StreamPlace& place() const { return place_; }

  /// Runs `body` in the calling thread, with the stream's helpers; `body` calls checkpoint() between its
  /// steps.
  template <class F>
  void execute(const F& body) {
    const Working here(*this);
    const Ran after(*this);
    arena().execute(body);
  }

  /// Memory for tensors between steps, at least that large; its contents are lost when it grows. Plans of
  /// deferred subgraphs have memory of their own, by depth.
  const Tensor& memory(std::size_t depth, std::size_t bytes);
  /// The plans that were bound last, of all requests, by the depth of deferred subgraphs.
  BoundPlans& bound(std::size_t depth);

  /// Binds the calling thread, which is the stream's own, as its first one. Where nothing is bound, it may
  /// run where the model was compiled, whatever the thread that made it is bound to.
  void bind_own_thread() const;

 private:
  class Working {
   public:
    explicit Working(Activity& a) : activity_(a) { activity_.enter(); }
    ~Working() { activity_.leave(); }

   private:
    Activity& activity_;
  };
  struct Ran {
    explicit Ran(Stream& s) : stream(s) {}
    ~Ran() { stream.ran(); }
    Stream& stream;
  };
  struct Helpers {
    std::atomic<int> here = 0;
    std::atomic<bool> came = false;  ///< since the last run
  };
  class Observer;
  void ran() noexcept;
  int helpers() const noexcept override { return helpers_->here; }
  void dismiss() noexcept override;
  void await_helpers() const noexcept;  ///< until they have left the arena; a second at most
  void release_arena() noexcept;
  void forget_arena() noexcept;  ///< without a call of its destructors
  bool child_begins(std::thread::id here) noexcept override;
  tbb::task_arena& arena();

  StreamPlace place_;
  int threads_;
  Binding binding_;
  std::vector<std::vector<int>> cpus_;                              // of each thread; empty: not bound
  std::vector<int> unbound_;                                        // where its own thread may be then
  std::shared_ptr<Helpers> helpers_ = std::make_shared<Helpers>();  // its observer's, too
  std::optional<LentArena> arena_;
  std::unique_ptr<Observer> observer_;
  std::vector<Tensor> memory_;
  std::vector<BoundPlans> bound_;
};

}  // namespace lamina
