#pragma once
// What fork and exit are tried with: models, requests of them, and what ends a process.
#include "common.h"

namespace processes {

using lamina::CompiledModel;
using lamina::Request;

inline int streams = 0;

inline CompiledModel compile() { return CompiledModel(long_network(20, 512).model(), {.streams = streams}); }

inline Request ready(const CompiledModel& model, float value) {
  auto r = model.create_request();
  r.set_input(0, filled({64, 512}, value));
  return r;
}

/// Ways for a process to end, with status 3; some are there several times, since the moment is another each
/// time.
std::vector<std::string> ways_to_end();
/// What such a process does; the status with which main() returns.
int end_by(const std::string& way);

}  // namespace processes
