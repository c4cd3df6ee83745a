#pragma once
/// What the functions share that work for long: progress, Ctrl-C, lists of lines.
#include <stop_token>
#include <string>
#include <vector>

#include "common.h"
#include "gil.h"
#include "interrupts.h"

namespace lamina::python {

/// Calls progress(stage, done). The callback is called without the GIL.
inline ProgressCallback progress_of(nb::handle callable) {
  if (callable.is_none()) return {};
  return [callable](std::string_view stage, double done) {
    tell_python([&] { call_python(callable, nb::make_tuple(text(stage), done)); });
  };
}

/// Does the work without the GIL, with a token that Ctrl-C stops.
template <class Work>
void stoppable(std::stop_token& token, Work&& work) {
  std::stop_source stop;
  without_the_gil({[](void* of) { static_cast<std::stop_source*>(of)->request_stop(); }, &stop}, [&] {
    if (stop.stop_requested()) stop = std::stop_source();
    token = stop.get_token();
    work();
  });
}

inline nb::list texts_of(const std::vector<std::string>& all) {
  nb::list out;
  for (const auto& one : all) out.append(text(one));
  return out;
}

}  // namespace lamina::python
