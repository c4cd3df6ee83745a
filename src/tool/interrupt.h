#pragma once
/// Ctrl-C and requests to terminate (SIGINT, SIGTERM).
#include <stop_token>
#include <thread>

namespace lamina::tool {

/// From here on the first of these signals ends the process at once, wherever it is: with one line on
/// standard error, the status 128 + its number, and no file that is written in part. A second one kills it.
/// Signals that are ignored stay so (nohup).
void end_by_signals();

/// While one exists, the first signal is only noted, so that a measurement can end and report its results. If
/// this object still exists a second later, the process ends as without it. At most one may exist.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  /// A stop is requested soon after the signal.
  std::stop_token stop() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::jthread watch_;
};

/// The signal that was noted since the last Interruptible began; 0: none. Any thread may ask.
int interrupted();

}  // namespace lamina::tool
