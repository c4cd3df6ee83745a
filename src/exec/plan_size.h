#pragma once
/// The memory that a plan takes beside the weights of its model.
#include <map>
#include <mutex>
#include <set>

#include "plan/plan.h"
#include "plan/weight_store.h"

namespace lamina {

/// Addresses of constants.
using Addresses = std::set<const void*>;
Addresses constants_of(const Graph& graph);

/// Passes packings on to a model's store, and notes those of constants that are not the model's but were
/// folded for the shapes of one plan. Thread-safe.
class NotingWeights final : public WeightStore {
 public:
  NotingWeights(ModelWeights& store, const Addresses& model) : store_(store), model_(model) {}

 private:
  Tensor do_packed(const Tensor& source, const std::string& key, const Make& make) override;
  Tensor do_moved(const Tensor& source, const std::string& key, const Make& make) override;
  friend std::size_t bytes_of(const Plan&, const Addresses&, const NotingWeights&);
  Tensor noted(const Tensor& source, Tensor packed);
  ModelWeights& store_;
  const Addresses& model_;
  std::mutex mutex_;
  std::map<const void*, std::size_t> own_;
  Addresses of_model_;
};

/// The approximate size of a plan: graphs, steps with their generated code, and constants that are neither
/// among `known` nor the model's.
std::size_t bytes_of(const Plan& plan, const Addresses& known, const NotingWeights& weights);

}  // namespace lamina
