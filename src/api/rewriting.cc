#include "api/rewriting.h"

#include "base/mapped_file.h"
#include "graph/constants.h"
#include "plan/plan.h"
#include "saved/tensors.h"

namespace lamina {

const RewrittenModel& Rewriting::get() const {
  done_([&] {
    result_ = rewrite_model(model_->loaded().graph, settings_, machine_ ? *machine_ : host(), log_,
                            model_->rules());
    {
      std::lock_guard lock(mutex_);
      for (const auto& [rule, why] : result_.ledger.stopped()) warned_.insert(rule);  // by the facts
    }
    // Releases pages of constants that folding has read.
    for (std::uint32_t v = 0; v < result_.original.value_slots(); ++v)
      if (const auto* constant = result_.original.constant({v}))
        drop_mapped_pages(constant->raw(), constant->bytes());
  });
  return result_;
}

void Rewriting::warn_of_stopped(const Ledger& ledger) const {
  for (const auto& [rule, why] : ledger.stopped()) {
    {
      std::lock_guard lock(mutex_);
      if (!warned_.insert(rule).second) continue;
    }
    log_.warning("{}; it is left out", why);
  }
}

Stateless Rewriting::take() {
  get();
  return std::move(result_.model);
}

void Rewriting::forget() { forget_weights(result_.original); }

Tensor Rewriting::constant(const Hash128& content) const {
  indexed_([&] {
    for_constants(get().model.graph, [&](const Tensor& t) {
      if (t.bytes() >= kLargeTensor) constants_[hash_of({t.raw(), t.bytes()})] = t;
    });
  });
  const auto it = constants_.find(content);
  return it == constants_.end() ? Tensor() : it->second;
}

}  // namespace lamina
