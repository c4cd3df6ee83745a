#include "measure/trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/thread_number.h"

namespace lamina {
namespace {

using Json = nlohmann::ordered_json;

/// Groups of rows.
constexpr int kThreads = 1, kRequests = 2;

double microseconds(RequestTrace::Time from, RequestTrace::Time to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

Json name_event(const char* what, int group, std::size_t row, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", group}, {"tid", row}, {"args", {{"name", name}}}};
}

Json bar(const std::string& name, const char* category, int group, std::size_t row, double at,
         double length) {
  return {{"ph", "X"},  {"name", name}, {"cat", category}, {"pid", group},
          {"tid", row}, {"ts", at},     {"dur", length}};
}

/// What is told of a step, once for all its runs.
class StepWords {
 public:
  explicit StepWords(const std::vector<std::shared_ptr<const Plan>>& plans) {
    for (const auto& row : rows_of(plans))
      words_[row.step] = {row.name,
                          {{"operator", row.op},
                           {"kernel", row.kernel},
                           {"layout", row.layout},
                           {"precision", row.precision},
                           {"flops", row.work.flops()},
                           {"bytes", row.work.bytes}}};
  }
  const std::pair<std::string, Json>& of(const PlanStep* step) const { return words_.at(step); }

 private:
  std::map<const PlanStep*, std::pair<std::string, Json>> words_;
};

}  // namespace

void RequestTrace::add(const Request& request, Time began, Time ended) {
  auto steps = Inside::runner_of(request).times();
  if (steps_ + steps.size() > most_steps_) {
    ++left_out_;
    return;
  }
  steps_ += steps.size();
  runs_.push_back({began, ended, std::move(steps)});
  for (auto& plan : Inside::runner_of(request).plans())
    if (std::find(plans_.begin(), plans_.end(), plan) == plans_.end()) plans_.push_back(std::move(plan));
}

std::string trace_text(const std::string& model, const std::vector<RequestTrace>& requests,
                       RequestTrace::Time begin) {
  auto events = Json::array();
  events.push_back(name_event("process_name", kThreads, 0, "threads"));
  events.push_back(name_event("process_name", kRequests, 0, "requests"));
  std::set<int> threads;
  std::size_t left_out = 0;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const auto& request = requests[r];
    left_out += request.left_out_;
    events.push_back(name_event("thread_name", kRequests, r, fmt::format("request {}", r)));
    const StepWords words(request.plans_);
    for (std::size_t n = 0; n < request.runs_.size(); ++n) {
      const auto& run = request.runs_[n];
      auto whole = bar(fmt::format("inference {}", n), "inference", kRequests, r,
                       microseconds(begin, run.began), microseconds(run.began, run.ended));
      whole["args"] = {{"steps", run.steps.size()}};
      events.push_back(std::move(whole));
      for (const auto& step : run.steps) {
        const auto& [name, args] = words.of(step.step);
        threads.insert(step.thread);
        auto event =
            bar(name, step.step->kind == PlanStep::Kind::kernel ? "kernel" : "step", kThreads,
                static_cast<std::size_t>(step.thread), microseconds(begin, step.began), step.microseconds);
        event["args"] = args;
        event["args"]["request"] = r;
        event["args"]["inference"] = n;
        events.push_back(std::move(event));
      }
    }
  }
  for (const auto thread : threads) {
    const auto name = thread_name(thread);
    events.push_back(name_event("thread_name", kThreads, static_cast<std::size_t>(thread),
                                name.empty() ? fmt::format("thread {}", thread) : name));
  }
  const Json document{
      {"displayTimeUnit", "ms"},
      {"otherData", {{"model", model}, {"version", version()}, {"inferences_left_out", left_out}}},
      {"traceEvents", std::move(events)}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lamina
