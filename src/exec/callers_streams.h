#pragma once
/// Streams of a model without streams: each caller's thread has one while it infers.
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "exec/stream.h"

namespace lamina {

/// The streams of a model without streams of its own, as many as callers used at the same time. Thread-safe,
/// by the mutex of all queues, which no caller may hold. A thread that has one may ask for another.
class CallersStreams {
 public:
  CallersStreams(StreamPlace place, int threads, Binding binding)
      : place_(std::move(place)), threads_(threads), binding_(binding) {}

  /// While it lives, its stream is the calling thread's.
  class Lent;
  /// To be called in a child of fork(), under the mutex: streams of threads that do not exist here are free.
  void child_begins() noexcept;

 private:
  struct One {
    One(const StreamPlace& place, int threads, Binding binding) : stream(place, threads, binding) {}
    Stream stream;
    std::atomic<std::thread::id> user{};
  };
  One& take();
  void give_back(One& one) noexcept;

  StreamPlace place_;
  int threads_;
  Binding binding_;
  std::array<std::atomic<One*>, 8> free_{};  // who finds one here takes no lock
  std::vector<std::unique_ptr<One>> all_;
  std::vector<One*> more_;  // that are free; has room for all
};

class CallersStreams::Lent {
 public:
  explicit Lent(CallersStreams& of) : of_(of), one_(of.take()) {}
  ~Lent() { of_.give_back(one_); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  Stream& operator*() const { return one_.stream; }

 private:
  CallersStreams& of_;
  One& one_;
};

}  // namespace lamina
