#pragma once
/// Runs code of libraries in a subprocess, where it can do no harm.
#include <chrono>
#include <functional>
#include <string>

namespace lamina {

struct SubprocessResult {
  std::string text;              ///< what the body gave; what happened where it gave nothing
  bool ended = false;            ///< it gave its text
  bool in_time = true;           ///< it did not have to be ended
  bool started_threads = false;  ///< it tried to (only where that could be watched)
};

/// Whether this process is such a subprocess: it has one thread, and loops over threads run on that.
bool is_subprocess();

/// Runs the body in a forked subprocess, which has a copy of this thread alone, within a time limit. Only the
/// text that the body returns comes back. If the system does not allow a process, the body runs here. When
/// the caller's work must stop (base/cancellation.h), the subprocess is ended.
SubprocessResult run_in_subprocess(const std::function<std::string()>& body, std::chrono::seconds most);

}  // namespace lamina
