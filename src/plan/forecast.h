#pragma once
/// What several threads, and several inferences at once, make of a plan.
#include "plan/plan.h"

namespace lamina {

/// Microseconds of one inference by `threads` threads while `streams` streams run one each, from the
/// estimates for one thread: steps are cut as base/divide.h cuts them, waking threads takes time, and memory
/// is shared by all. The plan may have been made for other threads.
double predicted_time(const Plan& plan, int threads, int streams);

}  // namespace lamina
