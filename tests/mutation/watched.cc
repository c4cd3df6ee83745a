#include "tests/mutation/watched.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>

namespace lamina::testing {
namespace {

/// The number that a child is at, seen by both processes.
class Counter {
 public:
  Counter() {
    void* memory = mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
    at_ = new (memory) std::atomic<std::uint64_t>;
  }
  ~Counter() { munmap(at_, sizeof(*at_)); }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  std::atomic<std::uint64_t>& at() { return *at_; }

 private:
  std::atomic<std::uint64_t>* at_;
};

/// The signal SIGPROF, whose default is to end the process, after so much processor time.
void limit_processor_time(int seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

[[noreturn]] void child(std::uint64_t from, std::uint64_t end, Counter& counter, int out,
                        const std::function<std::string(std::uint64_t)>& body, const WatchOptions& options) {
  for (std::uint64_t i = from; i < end; ++i) {
    counter.at() = i;
    limit_processor_time(options.processor_seconds);
    auto what = body(i);
    if (what.empty()) continue;
    for (auto& c : what)
      if (c == '\n') c = ' ';
    const auto line = fmt::format("{} {}\n", i, what);
    for (std::size_t at = 0; at < line.size();) {
      const auto n = ::write(out, line.data() + at, line.size() - at);
      if (n <= 0) break;
      at += static_cast<std::size_t>(n);
    }
  }
  counter.at() = end;
  _exit(0);
}

/// Everything that the child writes, until it is dead. Killed where its number stays the same for too long.
std::string listen(pid_t process, int in, Counter& counter, int seconds, bool& hung) {
  std::string all;
  auto since = std::chrono::steady_clock::now();
  auto number = counter.at().load();
  for (;;) {
    pollfd p{in, POLLIN, 0};
    if (poll(&p, 1, 200) > 0) {
      char buffer[4096];
      const auto n = ::read(in, buffer, sizeof buffer);
      if (n <= 0) return all;
      all.append(buffer, static_cast<std::size_t>(n));
    }
    const auto now = std::chrono::steady_clock::now();
    if (const auto at = counter.at().load(); at != number) {
      number = at;
      since = now;
    } else if (now - since > std::chrono::seconds(seconds)) {
      hung = true;
      kill(process, SIGKILL);
      since = now;
    }
  }
}

std::string death_of(int status, bool hung, const WatchOptions& options) {
  if (hung) return fmt::format("hangs: {} s without processor time", options.seconds);
  if (WIFEXITED(status)) return fmt::format("ends the process with status {}", WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGPROF)
    return fmt::format("takes more than {} s of processor time", options.processor_seconds);
  return fmt::format("crashes: signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

void parse_lines(const std::string& text, std::vector<Failure>& out) {
  std::size_t at = 0;
  for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const auto space = text.find(' ', at);
    out.push_back({std::stoull(text.substr(at, space - at)), text.substr(space + 1, end - space - 1)});
  }
}

}  // namespace

std::vector<Failure> watched(std::uint64_t first, std::uint64_t count,
                             const std::function<std::string(std::uint64_t)>& body,
                             const WatchOptions& options) {
  std::vector<Failure> failures;
  Counter counter;
  for (auto next = first; next < first + count;) {
    const auto end = std::min(next + options.batch, first + count);
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    counter.at() = next;
    std::fflush(nullptr);
    const pid_t process = fork();
    if (process < 0) throw std::runtime_error("no process");
    if (process == 0) {
      close(ends[0]);
      child(next, end, counter, ends[1], body, options);
    }
    close(ends[1]);
    bool hung = false;
    parse_lines(listen(process, ends[0], counter, options.seconds, hung), failures);
    close(ends[0]);
    int status = 0;
    waitpid(process, &status, 0);
    const auto reached = counter.at().load();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && reached == end) {
      next = end;
      continue;
    }
    failures.push_back({reached, death_of(status, hung, options)});
    next = reached + 1;
  }
  return failures;
}

}  // namespace lamina::testing
