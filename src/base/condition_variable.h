#pragma once
/// A condition variable for libraries that run with older versions of libstdc++, too.
#include <pthread.h>

#include <condition_variable>
#include <mutex>

namespace lamina {

/// std::condition_variable, but for wait() without a time: that of g++ 12 is a symbol GLIBCXX_3.4.30, which
/// systems with glibc 2.34 do not have. All other members need no newer symbol than the standard class of
/// g++ 5.
class ConditionVariable : public std::condition_variable {
 public:
  void wait(std::unique_lock<std::mutex>& lock) {
    pthread_cond_wait(native_handle(), lock.mutex()->native_handle());
  }
  template <class Predicate>
  void wait(std::unique_lock<std::mutex>& lock, Predicate done) {
    while (!done()) wait(lock);
  }
};

}  // namespace lamina
