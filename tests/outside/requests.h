#pragma once
// What the cases of requests share: models, requests of them, and something that holds threads.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "common.h"

namespace requests {

using lamina::CompiledModel;
using lamina::Request;

inline std::mutex log_mutex;
inline std::vector<std::string> errors_logged;

inline int streams = 0;
inline std::optional<CompiledModel> small_model, long_model, endless;

inline Request small(float a, float b) {
  auto r = small_model->create_request();
  r.set_input(0, filled({3, 8}, a));
  r.set_input(1, filled({3, 8}, b));
  return r;
}
inline bool small_is(const Request& r, float value) { return all_are(r.output(0), value); }

inline Request slow(float value = 1) {
  auto r = long_model->create_request();
  r.set_input(0, filled({64, 512}, value));
  return r;
}

/// A request whose result is `value`, if it ever ends.
inline Request without_end(float value, bool go = true) {
  auto r = endless->create_request();
  r.set_input(0, filled({1, 4}, value));
  r.set_input(1, lamina::Tensor::scalar<bool>(go));
  return r;
}

inline bool under_way(const Request& r) {
  return r.status() == RequestStatus::queued || r.status() == RequestStatus::running;
}

/// Something that several threads wait for.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++here_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void wait_for(int threads) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return here_ >= threads; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int here_ = 0;
};

/// Holds every stream of the small model in a callback until it is released.
class AllStreams {
 public:
  AllStreams() {
    for (int i = 0; i < streams; ++i) {
      held_.push_back(small(0, 0));
      held_.back().set_callback([this](std::exception_ptr) { gate_.pass(); });
      held_.back().start();
    }
    gate_.wait_for(streams);
  }
  ~AllStreams() { release(); }
  void release() {
    gate_.open();
    for (auto& r : held_) r.wait();
  }

 private:
  Gate gate_;
  std::vector<Request> held_;
};

// The cases of request_ends.cc.
void cancel_in_the_queue();
void cancel_while_it_runs();
void what_callbacks_throw();
void requests_go_under_way();
void last_handles_die_anywhere();
void models_go_by_themselves();
void the_queue_is_fair();
void callers_at_once();

}  // namespace requests
