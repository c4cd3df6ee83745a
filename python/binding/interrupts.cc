#include "interrupts.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace lamina::python {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 50ms;  // how often the watching thread looks
constexpr int kLooks = 40;    // after so many without work it sleeps until there is some

std::atomic<bool> signalled{false};       // SIGINT has arrived
struct sigaction before_ours;             // what was there for SIGINT before our handler
std::atomic<std::uintptr_t> main_thread;  // of Python

void on_sigint(int number, siginfo_t* info, void* context) {
  signalled.store(true, std::memory_order_relaxed);
  if ((before_ours.sa_flags & SA_SIGINFO) != 0)
    before_ours.sa_sigaction(number, info, context);
  else
    before_ours.sa_handler(number);
}

/// Puts our handler before the one that is there, unless that is the system's.
void put_handler() {
  struct sigaction now {};
  if (sigaction(SIGINT, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) == 0 && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_sigint) return;
  before_ours = now;
  struct sigaction ours = now;
  ours.sa_sigaction = on_sigint;
  ours.sa_flags |= SA_SIGINFO;
  sigaction(SIGINT, &ours, nullptr);
}

/// The thread that watches, and what it watches. Never destroyed; the child of a fork makes another one.
struct Watcher {
  // Of the main thread's call. The states: none; watched; seen: the watching thread may stop it.
  enum State : int { none, watched, seen };
  std::atomic<int> state{none};
  std::atomic<std::uint64_t> serial{0};
  Stop stop{};
  std::atomic<bool> stopped{false};

  std::mutex mutex;
  std::condition_variable work;
  std::atomic<bool> asleep{false};
  std::atomic<bool> started{false};

  void start_thread() {  // under the mutex
    if (started) return;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    try {
      std::thread([this] { loop(); }).detach();
      started = true;
    } catch (const std::exception&) {  // no thread is left: calls cannot be interrupted
    }
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
  }

  void wake() {
    const std::lock_guard lock(mutex);
    start_thread();
    work.notify_one();
  }

  void loop() {
    std::unique_lock lock(mutex);
    put_handler();
    std::uint64_t last = 0;
    for (int idle = 0;;) {
      look_at_main(last, idle);
      if (idle < kLooks) {
        work.wait_for(lock, kLook);
        continue;
      }
      asleep.store(true);
      if (state.load() == none) work.wait_for(lock, std::chrono::hours(1));  // wait() needs a newer libstdc++
      asleep.store(false);
      idle = 0;
    }
  }

  /// Under the mutex. What has been stopped is stopped again at each look: an inference that had not begun
  /// does not hear of the first time.
  void look_at_main(std::uint64_t& last, int& idle) {
    const auto now = serial.load(std::memory_order_acquire);
    if (state.load() == none) {
      idle = now == last ? idle + 1 : 0;
      last = now;
      return;
    }
    idle = 0;
    if (now != last) {  // it has just begun
      last = now;
      return;
    }
    int was = watched;
    if (state.compare_exchange_strong(was, seen)) put_handler();
    if (was == none) return;
    if (signalled.exchange(false)) stopped.store(true);
    if (stopped.load()) stop.function(stop.argument);
  }
};

std::atomic<Watcher*> the_watcher{new Watcher};

std::uintptr_t this_thread() noexcept { return static_cast<std::uintptr_t>(pthread_self()); }

}  // namespace

void Interrupts::the_calling_thread_is_the_main_one() {
  const auto main = nb::module_::import_("threading").attr("main_thread")().attr("ident");
  main_thread.store(nb::cast<std::uintptr_t>(main));
}

void Interrupts::after_fork_in_child() {
  main_thread.store(this_thread());
  the_watcher.store(new Watcher);  // the other one has no thread here, and its mutex may be locked
}

bool Interrupts::is_main_thread() noexcept {
  return main_thread.load(std::memory_order_relaxed) == this_thread();
}

bool Interrupts::had_signal() noexcept {
  return signalled.load(std::memory_order_relaxed) && is_main_thread() && signalled.exchange(false);
}

Interrupts::Watched::Watched(Stop stop) noexcept {
  if (!is_main_thread()) return;
  auto& watcher = *the_watcher.load(std::memory_order_relaxed);
  if (watcher.state.load(std::memory_order_relaxed) != Watcher::none) return;  // inside a callback
  on_ = true;
  watcher.stop = stop;
  watcher.stopped.store(false, std::memory_order_relaxed);
  watcher.serial.store(watcher.serial.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  watcher.state.store(Watcher::watched);
  if (watcher.asleep.load() || !watcher.started) watcher.wake();
}

bool Interrupts::Watched::end() noexcept {
  if (!on_) return false;
  on_ = false;
  auto& watcher = *the_watcher.load(std::memory_order_relaxed);
  if (watcher.state.exchange(Watcher::none) != Watcher::seen) return false;
  const std::lock_guard lock(watcher.mutex);  // it may be stopping this work
  return watcher.stopped.load();
}

}  // namespace lamina::python
