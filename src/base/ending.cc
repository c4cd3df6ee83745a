#include "base/ending.h"

#include <sys/time.h>
#include <unistd.h>

#include <cerrno>

#include "base/atomic_file.h"

namespace lamina {
namespace {

void say(std::string_view text) noexcept {
  while (::write(STDERR_FILENO, text.data(), text.size()) < 0 && errno == EINTR) continue;
}

}  // namespace

void end_process_now(std::string_view line, bool over, int status) noexcept {
  remove_temporary_files();
  if (over) say("\r\x1b[K");
  say(line);
  ::_exit(status);
}

void signal_after(std::chrono::milliseconds time) noexcept {
  const auto us = std::chrono::microseconds(time).count();
  const itimerval once{{0, 0}, {us / 1'000'000, us % 1'000'000}};
  ::setitimer(ITIMER_REAL, &once, nullptr);
}

}  // namespace lamina
