#include "plan/forecast.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/work_partition.h"
#include "kernels/family.h"

namespace lamina {
namespace {

/// Threads that together take all that memory gives: measured on servers and desktops between 2 and 8.
constexpr double kThreadsOfMemory = 4;
constexpr double kWaking = 3;  // microseconds, times the logarithm of how many are woken

bool waits_for_memory(Family family) {
  switch (family) {
    case Family::far:
    case Family::memory:
    case Family::row_memory:
    case Family::matmul_row_memory:
    case Family::far_weights:
      return true;
    default:
      return false;
  }
}

double memory_part(const Cost& cost) {
  double us = 0;
  for (const auto& part : cost.parts())
    if (waits_for_memory(part.family)) us += part.us;
  return std::max(0.0, us);
}

}  // namespace

std::vector<StepTimeAlone> times_alone(const Plan& plan) {
  std::map<NodeId, double> memory;
  for (const auto& choice : plan.choices) memory[choice.node] = memory_part(choice.cost);
  std::vector<StepTimeAlone> out;
  for (const auto& step : plan.steps) {
    const auto of_node = step.kind == PlanStep::Kind::kernel ? memory.find(step.node) : memory.end();
    // Copies between layouts are half arithmetic of addresses, half memory.
    const bool copies = !step.runs_a_node();
    const double shared = of_node != memory.end() ? std::min(of_node->second, step.cost)
                          : copies                ? step.cost / 2
                                                  : 0;
    out.push_back({step.cost, shared});
  }
  return out;
}

double predicted_time(const std::vector<StepTimeAlone>& steps, int threads, int streams) {
  double sum = 0;
  for (const auto& step : steps) {
    const double parts = std::clamp(std::floor(step.all / kWorthAThread), 1.0, static_cast<double>(threads));
    // Parts are never equal, and the last one is waited for.
    const double uneven = parts > 1 ? 1.05 : 1;
    const double own = (step.all - step.memory) / parts * uneven;
    const double waiting = step.memory * std::max(1 / parts, streams / kThreadsOfMemory);
    sum += own + waiting + (parts > 1 ? kWaking * std::log2(parts) : 0);
  }
  return sum;
}

}  // namespace lamina
