#include "exec/bound.h"

#include <algorithm>
#include <chrono>

#include "base/threads.h"
#include "interpreter/interpreter.h"
#include "ops/bodies.h"
#include "ops/control.h"

namespace lamina {
namespace {
using Clock = std::chrono::steady_clock;

/// Shares the thread's processor time out to steps. Its clock is a call of the system: read now and then
/// only, and shared out by how long the steps since then took.
class ProcessorTime {
 public:
  explicit ProcessorTime(std::vector<StepTime>& times) : times_(times) {}

  void add(Clock::time_point now) {
    if (now - read_ >= std::chrono::microseconds(200)) share();
  }
  void share() {
    const double cpu = thread_microseconds();
    double wall = 0;
    for (auto i = done_; i < times_.size(); ++i) wall += times_[i].microseconds;
    for (; done_ < times_.size(); ++done_)
      if (wall > 0) times_[done_].cpu_microseconds = (cpu - cpu_) * times_[done_].microseconds / wall;
    cpu_ = cpu;
    read_ = Clock::now();
  }

 private:
  std::vector<StepTime>& times_;
  std::size_t done_ = 0;
  double cpu_ = thread_microseconds();
  Clock::time_point read_ = Clock::now();
};
}  // namespace

bool overlap(const Tensor& a, const Tensor& b) {
  return a.valid() && b.valid() && a.raw() < b.raw() + b.bytes() && b.raw() < a.raw() + a.bytes();
}

bool CallersTensors::overlap(const Tensor& memory) const {
  const auto with = [&](const Tensor& t) { return lamina::overlap(memory, t); };
  return std::any_of(inputs.begin(), inputs.end(), with) || std::any_of(results.begin(), results.end(), with);
}

Bound::Bound(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {
  for (const auto& step : plan_->steps) steps_.push_back(step.code ? step.code->step() : nullptr);
  step_pointers_.resize(steps_.size());
  pointers_.resize(plan_->tensors.size(), nullptr);
  dynamic_.resize(plan_->tensors.size());
  for (std::uint32_t t = 0; t < pointers_.size(); ++t)
    if (const auto& tensor = plan_->tensors[t]; tensor.root == t && tensor.place == Place::constant)
      pointers_[t] = const_cast<std::byte*>(tensor.constant.raw());
  results_.resize(plan_->results.size());
  own_results_.resize(plan_->results.size());
  inputs_.resize(plan_->inputs.size());
}

void Bound::prepare(const std::vector<Tensor>& inputs, const std::vector<Tensor>& results,
                    const Tensor& arena, const CallersTensors& callers) {
  bool changed = false;
  if (arena_ != arena.raw()) {
    arena_ = arena.raw();
    changed = true;
    for (std::uint32_t t = 0; t < pointers_.size(); ++t)
      if (const auto& tensor = plan_->tensors[t]; tensor.root == t && tensor.place == Place::arena)
        pointers_[t] = const_cast<std::byte*>(arena_) + tensor.offset;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (plan_->inputs[i] == kNoTensor) continue;
    if (inputs[i].aligned()) {
      changed |= point(plan_->inputs[i], inputs[i].raw());
    } else {
      inputs_[i] = inputs[i].to_aligned();
      changed |= point(plan_->inputs[i], inputs_[i].raw());
    }
  }
  for (auto& own : own_results_)
    if (own.valid() && callers.overlap(own)) own = Tensor();  // whoever has the tensor keeps it
  for (std::size_t r = 0; r < results_.size(); ++r) {
    const auto t = plan_->results[r];
    if (t == kNoTensor || plan_->tensors[t].place == Place::dynamic) continue;
    const auto& tensor = plan_->tensors[t];
    const auto root = tensor.root;
    const bool given = results[r].valid();
    if (!given && !own_results_[r].valid())
      own_results_[r] = Tensor(tensor.type.element, tensor.type.shape.sizes());
    results_[r] = given ? results[r] : own_results_[r];  // where the last one lay, but it may own its memory
    changed |= point(root, results_[r].raw());
  }
  if (changed) point_steps();
}

bool Bound::point(std::uint32_t t, const void* to) {
  auto& pointer = pointers_[plan_->tensors[t].root];
  if (pointer == to) return false;
  pointer = static_cast<std::byte*>(const_cast<void*>(to));
  return true;
}

void Bound::point_steps() {
  const auto address = [&](std::uint32_t t) -> std::byte* {
    if (t == kNoTensor) return nullptr;
    const auto& tensor = plan_->tensors[t];
    return pointers_[tensor.root] + tensor.shift;
  };
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    if (!steps_[s]) continue;
    const auto& step = plan_->steps[s];
    auto& p = step_pointers_[s];
    p.in.clear();
    p.out.clear();
    for (const auto t : step.in) p.in.push_back(address(t));
    for (const auto t : step.out) p.out.push_back(address(t));
    auto* const scratch = step.scratch ? const_cast<std::byte*>(arena_) + plan_->scratch_offset : nullptr;
    steps_[s]->bind({p.in.data(), p.out.data(), scratch});
  }
}

void Bound::run_step(std::size_t s) {
  if (steps_[s])
    steps_[s]->run();
  else
    run_dynamic(plan_->steps[s]);
}

void Bound::run(std::vector<StepTime>* times, const Checkpoint& checkpoint) {
  if (!times) {
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      checkpoint();
      run_step(s);
    }
    return;
  }
  times->clear();
  if (unread_ > 0) {
    --unread_;
    run_timed(*times, checkpoint, [](Clock::time_point) {});
    for (auto& t : *times) t.cpu_microseconds = busy_ * t.microseconds;
    return;
  }
  ProcessorTime processor(*times);
  run_timed(*times, checkpoint, [&](Clock::time_point now) { processor.add(now); });
  processor.share();
  double wall = 0, cpu = 0;
  for (const auto& t : *times) {
    wall += t.microseconds;
    cpu += t.cpu_microseconds;
  }
  // To read it costs as much as some steps: in short runs it is taken to be as it was the last time.
  busy_ = wall > 0 ? std::min(cpu / wall, 1.0) : 1;
  unread_ = wall < 100 ? 15 : 0;
}

template <class F>
void Bound::run_timed(std::vector<StepTime>& times, const Checkpoint& checkpoint, const F& after) {
  auto before = Clock::now();
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    checkpoint();
    const auto& step = plan_->steps[s];
    const int branch = branch_of(step);  // the condition's memory may be another's afterwards
    run_step(s);
    const auto now = Clock::now();
    times.push_back({&step, std::chrono::duration<double, std::micro>(now - before).count(), 0, branch});
    before = now;
    after(now);
  }
}

Tensor Bound::tensor(std::uint32_t t) const {
  const auto& tensor = plan_->tensors[t];
  if (tensor.place == Place::dynamic) return dynamic_[t];
  return Tensor::wrap(tensor.type.element, tensor.type.shape.sizes(), pointers_[tensor.root] + tensor.shift);
}

const Tensor& Bound::result(std::size_t r) const {
  const auto t = plan_->results[r];
  return plan_->tensors[t].place == Place::dynamic ? dynamic_[t] : results_[r];
}

int Bound::branch_of(const PlanStep& step) const {
  const bool chooses = step.node.valid() && plan_->graph.node(step.node).op.is<If>();
  return chooses && step.in[0] != kNoTensor && !control::is_true(tensor(step.in[0])) ? 1 : 0;
}

void Bound::run_dynamic(const PlanStep& step) {
  std::vector<Tensor> in;
  for (const auto t : step.in) in.push_back(t == kNoTensor ? Tensor() : tensor(t));
  auto out = step.dynamic ? step.dynamic->run(in) : interpret_node(plan_->graph.node(step.node), in);
  for (std::size_t i = 0; i < out.size(); ++i) dynamic_[step.out[i]] = std::move(out[i]);
}

}  // namespace lamina
