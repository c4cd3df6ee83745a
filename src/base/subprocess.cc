#include "base/subprocess.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>

#include "base/cancellation.h"
#include "base/error.h"
#include "base/guarded_memory.h"

namespace lamina {
namespace {

constexpr std::size_t kText = 1 << 16;

/// What the child and its signal handlers leave for the parent.
struct Report {
  volatile bool ended;
  char text[kText];
};

Report* report_of_child = nullptr;
bool is_child = false;

/// Allocates nothing: what crashes in malloc() has its lock.
template <class... A>
void note(fmt::format_string<A...> text, A&&... args) {
  *fmt::format_to_n(report_of_child->text, kText - 1, text, std::forward<A>(args)...).out = 0;
}

/// Formally not safe in a signal handler; but the process ends here in any case.
void on_crash(int signal, siginfo_t* info, void*) {
  std::signal(signal, SIG_DFL);
  if (signal == SIGSEGV || signal == SIGBUS)
    describe_touch(info->si_addr, report_of_child->text);
  else
    note("ended by signal {} ({})", signal, ::sigdescr_np(signal));
  ::_exit(1);
}

void handle(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(signal, &action, nullptr);
}

/// Starting a thread ends the process by SIGSYS (glibc blocks signals around it, so that a handler would not
/// be called); nothing happens where the system does not have this.
void watch_for_threads() {
  const auto jump = [](unsigned call, std::uint8_t to) {
    return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, to, 0);
  };
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 4),
                        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        jump(SYS_clone, 1),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

[[noreturn]] void be_child(const std::function<std::string()>& body) {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  static std::byte stack[1 << 16];  // handlers run even where the stack has overflowed
  const stack_t other{stack, 0, sizeof(stack)};
  ::sigaltstack(&other, nullptr);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) handle(signal, on_crash);
  for (const int signal : {SIGINT, SIGTERM, SIGALRM}) std::signal(signal, SIG_DFL);
  is_child = true;
  watch_for_threads();
  try {
    note("{}", body());
    report_of_child->ended = true;
  } catch (const std::exception& e) {
    note("{}", e.what());
  } catch (...) {
    note("an exception of unknown type");
  }
  ::_exit(0);
}

/// How often a trial's parent looks whether its own work must stop.
constexpr std::chrono::milliseconds kLook{20};

bool must_stop_here() {
  const auto* const scope = StopScope::here();
  return scope != nullptr && scope->must_stop();
}

/// How the child ended; nothing when it had to be ended: after that time, or since the caller's work must
/// stop.
std::optional<int> wait_for(pid_t child, int end_of_child, std::chrono::seconds most) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + most;
  pollfd waiting{end_of_child, POLLIN, 0};  // its end closes the pipe; what it runs may, too
  int ready = 0;
  do {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, kLook.count())));
  } while (((ready < 0 && errno == EINTR) || ready == 0) && Clock::now() < until && !must_stop_here());
  int status = 0;
  while (Clock::now() < until && !must_stop_here()) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ::kill(child, SIGKILL);
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return std::nullopt;
}

}  // namespace

bool is_subprocess() { return is_child; }

SubprocessResult run_in_subprocess(const std::function<std::string()>& body, std::chrono::seconds most) {
  SubprocessResult out;
  int ends[2];
  void* const shared =
      ::mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const bool pipe = shared != MAP_FAILED && ::pipe(ends) == 0;
  const pid_t child = pipe ? ::fork() : -1;
  if (child == 0) {
    ::close(ends[0]);
    report_of_child = static_cast<Report*>(shared);
    be_child(body);
  }
  if (child < 0) {
    out.text = body();
    out.ended = true;
  } else {
    ::close(ends[1]);
    const auto& report = *static_cast<const Report*>(shared);
    const auto status = wait_for(child, ends[0], most);
    out.ended = report.ended;
    out.started_threads = status && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGSYS;
    out.text = std::string(report.text, ::strnlen(report.text, kText));
    out.in_time = status.has_value();
    if (!status) out.text = fmt::format("did not end within {} seconds", most.count());
    if (status && !out.ended && out.text.empty()) out.text = "ended the process";
  }
  if (pipe) ::close(ends[0]);
  if (pipe && child < 0) ::close(ends[1]);
  if (shared != MAP_FAILED) ::munmap(shared, sizeof(Report));
  stop_point();  // all is given back
  return out;
}

}  // namespace lamina
