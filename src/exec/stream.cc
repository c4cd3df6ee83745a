#include "exec/stream.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/threads.h"
#include "base/topology.h"
#include "base/work_bounds.h"

namespace lamina {

/// Observes helpers that enter and leave the arena. It may outlive the stream for a moment, so it refers to
/// nothing of the stream.
class Stream::Observer : public tbb::task_scheduler_observer {
 public:
  Observer(tbb::task_arena& arena, const Stream& stream)
      : tbb::task_scheduler_observer(arena), cpus_(stream.cpus_), helpers_(stream.helpers_) {
    observe(true);
  }
  ~Observer() override { observe(false); }

  void on_scheduler_entry(bool worker) noexcept override {
    if (!worker) return;  // the caller's thread, or the stream's own: not ours to bind here
    ++helpers_->here;
    helpers_->came.store(true, std::memory_order_relaxed);
    become_helper();
    const auto slot = static_cast<std::size_t>(tbb::this_task_arena::current_thread_index());
    if (slot >= cpus_.size()) return;
    try {
      bind_here(cpus_[slot]);
    } catch (...) {  // no memory: it helps wherever it is
    }
  }
  void on_scheduler_exit(bool worker) noexcept override {
    if (!worker) return;
    if (!cpus_.empty()) unbind_here();
    --helpers_->here;
  }

 private:
  std::vector<std::vector<int>> cpus_;
  std::shared_ptr<Helpers> helpers_;
};

Stream::Stream(StreamPlace place, int threads, Binding binding)
    : place_(std::move(place)), threads_(threads), binding_(binding) {
  if (binding_ != Binding::none)
    for (const int cpu : place_.cpus)
      cpus_.push_back(binding_ == Binding::processors ? std::vector<int>{cpu} : *place_.node_cpus);
  else
    unbound_ = affinity_here();
  enlist();
}

Stream::~Stream() {
  delist();
  // Helpers leave by themselves when there is no work; one that has not left yet would stay bound.
  if (!cpus_.empty()) await_helpers();
  release_arena();
}

tbb::task_arena& Stream::arena() {
  if (!arena_) {
    arena_.emplace(threads_);
    bring_helpers(**arena_, threads_);
    if (threads_ > 1) observer_ = std::make_unique<Observer>(**arena_, *this);
  }
  return **arena_;
}

const Tensor& Stream::memory(std::size_t depth, std::size_t bytes) {
  if (memory_.size() <= depth) memory_.resize(depth + 1);
  auto& memory = memory_[depth];
  // The memory is never empty: tensors without elements need an address, too.
  bytes = std::max<std::size_t>(bytes, 64);
  if (!memory.valid() || memory.bytes() < bytes) {
    memory = Tensor();  // first give back the old
    require_memory("memory between layers", bytes);
    memory = Tensor(ElementType::u8, {static_cast<std::int64_t>(bytes)});
  }
  return memory;
}

BoundPlans& Stream::bound(std::size_t depth) {
  if (bound_.size() <= depth) bound_.resize(depth + 1);
  return bound_[depth];
}

void Stream::bind_own_thread() const { bind_here(cpus_.empty() ? unbound_ : cpus_[0]); }

void Stream::ran() noexcept {
  if (threads_ < 2 || !arena_) return;  // in a child of fork() there is none
  const bool came = helpers() > 0 || helpers_->came.load(std::memory_order_relaxed);
  if (came) helpers_->came.store(false, std::memory_order_relaxed);
  arena_->used(came);
}

void Stream::dismiss() noexcept {
  await_helpers();
  release_arena();
}

void Stream::await_helpers() const noexcept {
  using Clock = std::chrono::steady_clock;
  const auto late = Clock::now() + std::chrono::seconds(1);
  while (helpers() > 0 && !Quiescence::is_for_good() && Clock::now() < late)
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

void Stream::release_arena() noexcept {
  if (Quiescence::is_for_good()) return forget_arena();  // the process ends: helper threads are paused in it
  observer_.reset();
  arena_.reset();
}

void Stream::forget_arena() noexcept {
  (void)observer_.release();
  if (arena_) arena_->forget();
  arena_.reset();
}

bool Stream::child_begins(std::thread::id) noexcept {
  helpers_->here = 0;
  forget_arena();  // oneTBB's arena counts on threads that the child does not have
  return true;
}

}  // namespace lamina
