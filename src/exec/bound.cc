#include "exec/bound.h"

#include <algorithm>

#include "interpreter/interpreter.h"

namespace lamina {

Bound::Bound(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {
  const auto& tensors = plan_->tensors;
  pointers_.resize(tensors.size(), nullptr);
  for (std::uint32_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].root != t) continue;
    if (tensors[t].place == Place::constant) pointers_[t] = const_cast<std::byte*>(tensors[t].constant.raw());
    if (tensors[t].place == Place::input || tensors[t].place == Place::result) users_[t];
  }
  std::size_t in = 0, out = 0;
  for (std::uint32_t s = 0; s < plan_->steps.size(); ++s) {
    const auto& step = plan_->steps[s];
    constexpr double kLong = 20;  // microseconds
    steps_.push_back(step.code ? step.code->step() : nullptr);
    long_.push_back(!step.code || step.cost > kLong);
    lists_.push_back({in, out});
    in += step.in.size();
    out += step.out.size();
    for (const auto* list : {&step.in, &step.out})
      for (const auto t : *list)
        if (const auto it = t == kNoTensor ? users_.end() : users_.find(tensors[t].root); it != users_.end())
          it->second.push_back(s);
  }
  in_.resize(in);
  out_.resize(out);
  stale_.resize(steps_.size(), true);
}

void Bound::all_stale() {
  std::fill(stale_.begin(), stale_.end(), true);
  any_stale_ = true;
}

void Bound::point_arena(const std::byte* arena) {
  if (arena_ == arena) return;
  arena_ = arena;
  for (std::uint32_t t = 0; t < pointers_.size(); ++t)
    if (const auto& tensor = plan_->tensors[t]; tensor.root == t && tensor.place == Place::arena)
      pointers_[t] = const_cast<std::byte*>(arena_) + tensor.offset;
  all_stale();
}

void Bound::point_input(std::size_t i, const Tensor& input) {
  const auto t = plan_->inputs[i];
  if (t == kNoTensor) return;
  if (input.aligned()) return point(t, input.raw());
  aligned_.push_back(input.to_aligned());
  point(t, aligned_.back().raw());
}

void Bound::point_result(std::size_t r, const Tensor& memory) {
  if (const auto t = plan_->results[r]; t != kNoTensor) point(t, memory.raw());
}

void Bound::point(std::uint32_t t, const void* to) {
  const auto root = plan_->tensors[t].root;
  if (pointers_[root] == to) return;
  pointers_[root] = static_cast<std::byte*>(const_cast<void*>(to));
  const auto it = users_.find(root);
  if (it == users_.end()) return all_stale();
  for (const auto s : it->second) stale_[s] = true;
  any_stale_ = true;
}

void Bound::bind() {
  if (!any_stale_) return;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    if (!stale_[s]) continue;
    bind_step(s);
    stale_[s] = false;
  }
  any_stale_ = false;
}

void Bound::bind_step(std::size_t s) {
  if (!steps_[s]) return;
  const auto address = [&](std::uint32_t t) -> std::byte* {
    if (t == kNoTensor) return nullptr;
    const auto& tensor = plan_->tensors[t];
    return pointers_[tensor.root] + tensor.shift;
  };
  const auto& step = plan_->steps[s];
  auto** const in = in_.data() + lists_[s].in;
  auto** const out = out_.data() + lists_[s].out;
  std::transform(step.in.begin(), step.in.end(), in, address);
  std::transform(step.out.begin(), step.out.end(), out, address);
  auto* const scratch = step.scratch ? const_cast<std::byte*>(arena_) + plan_->scratch_offset : nullptr;
  steps_[s]->bind({in, out, scratch});
}

void Bound::run_step(std::size_t s) {
  if (steps_[s])
    steps_[s]->run();
  else
    run_dynamic(plan_->steps[s]);
}

void Bound::run_dynamic(const PlanStep& step) {
  std::vector<Tensor> in;
  for (const auto t : step.in) in.push_back(t == kNoTensor ? Tensor() : tensor(t));
  const auto& node = plan_->graph.node(step.node);
  std::vector<Tensor> out;
  try {
    out = step.dynamic ? step.dynamic->run(in) : interpret_node(node, in);
  } catch (const Error& e) {
    throw in_node(e, step.name, node);
  }
  for (std::size_t i = 0; i < out.size(); ++i) made_[step.out[i]] = std::move(out[i]);
}

Tensor Bound::tensor(std::uint32_t t) const {
  const auto& tensor = plan_->tensors[t];
  if (tensor.place == Place::dynamic) return made_.at(t);
  return Tensor::wrap(tensor.type.element, tensor.type.shape.sizes(), pointers_[tensor.root] + tensor.shift);
}

void Bound::end_run() noexcept {
  aligned_.clear();
  for (auto& [t, tensor] : made_) tensor = Tensor();
}

}  // namespace lamina
