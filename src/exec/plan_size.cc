#include "exec/plan_size.h"

#include "graph/constants.h"

namespace lamina {

Addresses constants_of(const Graph& graph) {
  Addresses out;
  for_constants(graph, [&](const Tensor& t) { out.insert(t.raw()); });
  return out;
}

Tensor NotingWeights::do_packed(const Tensor& source, const std::string& key, const Make& make) {
  return noted(source, store_.packed(source, key, PackedSize::of_any(), make));
}

Tensor NotingWeights::do_moved(const Tensor& source, const std::string& key, const Make& make) {
  return noted(source, store_.moved(source, key, PackedSize::of_any(), make));
}

Tensor NotingWeights::noted(const Tensor& source, Tensor packed) {
  std::lock_guard lock(mutex_);
  if (model_.contains(source.raw()))
    of_model_.insert(packed.raw());
  else
    own_[packed.raw()] = packed.bytes();
  return packed;
}

std::size_t bytes_of(const Plan& plan, const Addresses& known, const NotingWeights& weights) {
  constexpr std::size_t kNode = 1024, kStep = 8192;
  auto own = weights.own_;
  const auto add = [&](const Tensor& t) {
    if (t.raw() && !known.contains(t.raw()) && !weights.of_model_.contains(t.raw())) own[t.raw()] = t.bytes();
  };
  for_constants(plan.graph, add);
  for (const auto& t : plan.tensors)
    if (t.place == Place::constant) add(t.constant);
  auto nodes = plan.graph.node_slots();
  if (plan.rest) {
    for_constants(*plan.rest, add);
    nodes += 2 * plan.rest->node_slots();  // its program has a copy
  }
  std::size_t bytes = nodes * kNode + plan.steps.size() * kStep;
  for (const auto& [address, size] : own) bytes += size;
  return bytes;
}

}  // namespace lamina
