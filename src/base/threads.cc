#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/floating_point.h"
#include "base/no_destructor.h"
#include "base/topology.h"

namespace lamina {
namespace {

/// The signals that are not caused by the thread's own instructions.
sigset_t asynchronous_signals() {
  sigset_t set;
  sigfillset(&set);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    sigdelset(&set, signal);
  return set;
}

struct Leftovers {
  std::mutex mutex;
  std::list<OwnThread> threads;
};
Leftovers& leftovers() {
  static NoDestructor<Leftovers> all;
  return *all;
}

/// A set of processors as large as the kernel wants it.
class CpuSet {
 public:
  explicit CpuSet(int highest) : room_(static_cast<std::size_t>(std::max(highest + 1, 1024))) {
    set_ = CPU_ALLOC(room_);
    if (set_ == nullptr) fail(ErrorCode::out_of_memory, "a set of {} processors", room_);
    CPU_ZERO_S(bytes(), set_);
  }
  ~CpuSet() { CPU_FREE(set_); }
  CpuSet(const CpuSet&) = delete;
  CpuSet& operator=(const CpuSet&) = delete;

  void add(int cpu) { CPU_SET_S(static_cast<std::size_t>(cpu), bytes(), set_); }
  std::size_t bytes() const { return CPU_ALLOC_SIZE(room_); }
  cpu_set_t* get() { return set_; }

 private:
  std::size_t room_;
  cpu_set_t* set_;
};

}  // namespace

SignalsBlocked::SignalsBlocked() noexcept {
  const auto blocked = asynchronous_signals();
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

OwnThread::OwnThread(const std::string& name, std::function<void()> body)
    : ended_(std::make_shared<std::atomic<bool>>(false)) {
  // The mask is inherited: no signal can come to the new thread before it blocks them.
  const SignalsBlocked here;
  try {
    thread_ = std::thread([body = std::move(body), ended = ended_]() mutable {
      FloatingPoint().set_here();
      body();
      body = nullptr;  // what it had may end other threads
      *ended = true;
    });
  } catch (const std::system_error&) {
    fail(ErrorCode::out_of_memory, "no thread \"{}\": the system allows no more", name);
  }
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

void OwnThread::join() noexcept {
  if (!thread_.joinable()) return;
  is_this_thread() ? leave_over() : thread_.join();
}

void OwnThread::leave_over() noexcept {
  auto& left = leftovers();
  std::lock_guard lock(left.mutex);
  left.threads.push_back(std::move(*this));
}

/// The handle is not used again: detaching a thread that no longer exists would write to memory of another
/// thread.
void OwnThread::forget() noexcept {
  if (thread_.joinable()) new (std::nothrow) std::thread(std::move(thread_));
}

void OwnThread::join_ended() noexcept { join_some(true); }
void OwnThread::join_leftovers() noexcept { join_some(false); }

void OwnThread::join_some(bool ended_only) noexcept {
  std::list<OwnThread> all;
  {
    auto& left = leftovers();
    std::lock_guard lock(left.mutex);
    for (auto it = left.threads.begin(); it != left.threads.end();) {
      const auto thread = it++;
      if (thread->is_this_thread() || (ended_only && !*thread->ended_)) continue;
      all.splice(all.end(), left.threads, thread);
    }
  }
}

void OwnThread::forget_leftovers() noexcept {
  auto& left = leftovers();
  new (&left.mutex) std::mutex;  // another thread may have held it at the fork
  new (&left.threads) std::list<OwnThread>;
}

void name_thread_here(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

namespace {
double microseconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}
}  // namespace

double thread_microseconds() { return microseconds_of(CLOCK_THREAD_CPUTIME_ID); }

namespace {
std::atomic<int> helpers{0};
std::atomic<bool> lost{false};

struct HelperId;
struct HelperIds {
  std::mutex mutex;
  std::vector<const HelperId*> all;
};
HelperIds& helper_ids() {
  static NoDestructor<HelperIds> ids;
  return *ids;
}

/// The number of a helper thread, in the list while the thread exists.
struct HelperId {
  HelperId() {
    auto& ids = helper_ids();
    std::lock_guard lock(ids.mutex);
    ids.all.push_back(this);
  }
  ~HelperId() {
    auto& ids = helper_ids();
    std::lock_guard lock(ids.mutex);
    std::erase(ids.all, this);
  }
  /// Processor time so far. To be asked while the thread is in the list.
  double microseconds() const {
    clockid_t clock{};
    return pthread_getcpuclockid(thread, &clock) == 0 ? microseconds_of(clock) : 0;
  }
  const pid_t id = ::gettid();
  const pthread_t thread = pthread_self();
};

/// As the system says: "4711 (a name) R 4242 ...". R runs, D waits for a page in the midst of it. Nothing
/// where the file cannot be read: there is no /proc, or the process has no number for another file.
std::optional<bool> sleeps(pid_t thread) {
  std::ifstream in(fmt::format("/proc/self/task/{}/stat", thread));
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  const auto behind = line.rfind(')');
  if (behind == std::string::npos || behind + 2 >= line.size()) return std::nullopt;
  return line[behind + 2] != 'R' && line[behind + 2] != 'D';
}
}  // namespace

FallingAsleep::FallingAsleep() noexcept {
  auto& ids = helper_ids();
  const std::lock_guard lock(ids.mutex);
  try {
    for (const auto* helper : ids.all) before_[helper->id] = helper->microseconds();
  } catch (const std::bad_alloc&) {  // all that they have ever used counts
  }
}

bool FallingAsleep::is_over() noexcept try {
  constexpr double kMost = 10000;                  // to fall asleep takes less than a thousand microseconds
  constexpr std::chrono::milliseconds kStill(20);  // one that gets no processor for so long seems to sleep
  auto& ids = helper_ids();
  const std::lock_guard lock(ids.mutex);
  return std::all_of(ids.all.begin(), ids.all.end(), [&](const HelperId* helper) {
    const auto state = sleeps(helper->id);
    if (state.value_or(false)) return true;
    const auto it = before_.find(helper->id);
    const double used = helper->microseconds();
    if (used - (it == before_.end() ? 0 : it->second) > kMost) return true;
    if (state) return false;
    const auto now = std::chrono::steady_clock::now();
    auto& seen = seen_.try_emplace(helper->id, Seen{used, now}).first->second;
    if (seen.microseconds != used) seen = {used, now};
    return now - seen.since > kStill;
  });
} catch (const std::bad_alloc&) {  // it cannot be found out
  return true;
}

int helpers_made() { return helpers.load(std::memory_order_acquire); }
void helpers_ended() { helpers = 0; }
bool helpers_are_lost() { return lost; }
void helpers_lost() {
  if (helpers.exchange(0) > 0) lost = true;
  auto& ids = helper_ids();
  new (&ids.mutex) std::mutex;  // another thread may have held it at the fork
  new (&ids.all) std::vector<const HelperId*>;
}

void become_helper() {
  thread_local bool done = false;
  if (done) return;
  thread_local const HelperId id;
  done = true;
  const auto blocked = asynchronous_signals();
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  char name[16] = {};
  if (pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
      std::string_view(name).starts_with("lamina-s"))
    pthread_setname_np(pthread_self(), "lamina-helper");
  ++helpers;
}

namespace {

/// The processors that the calling thread could use before it was bound.
struct Before {
  std::vector<int> cpus;
  bool bound = false;
};
thread_local Before before;

bool set_affinity(const std::vector<int>& cpus) {
  if (cpus.empty()) return false;
  CpuSet set(*std::max_element(cpus.begin(), cpus.end()));
  for (const int cpu : cpus) set.add(cpu);
  return sched_setaffinity(0, set.bytes(), set.get()) == 0;
}

}  // namespace

bool bind_here(const std::vector<int>& cpus) {
  if (!before.bound) before.cpus = affinity_here();
  before.bound = set_affinity(cpus) || before.bound;
  return before.bound;
}

void unbind_here() {
  if (before.bound) before.bound = !set_affinity(before.cpus);
}

}  // namespace lamina
