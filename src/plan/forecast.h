#pragma once
/// Predicts the time of a plan with several threads, and with several inferences at the same time.
#include "plan/plan.h"

namespace lamina {

/// The time of one step on one thread, in microseconds.
struct StepTimeAlone {
  double all = 0;
  double memory = 0;  ///< of it: waiting for memory, which streams share
};
/// By the estimates of a plan, which may have been made for any number of threads.
std::vector<StepTimeAlone> times_alone(const Plan& plan);

/// Microseconds of one inference by `threads` threads while `streams` streams run one each: steps are cut as
/// base/work_partition.h cuts them, waking threads takes time, and memory is shared by all.
double predicted_time(const std::vector<StepTimeAlone>& steps, int threads, int streams);

}  // namespace lamina
