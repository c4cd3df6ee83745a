#pragma once
/// Checks of a model that was read against its limits.
#include "api/loaded_model.h"

namespace lamina {

/// Nodes, outputs, elements, operators and files. Throws Error(over_limit).
void require_within(const LoadedModel& model, const ModelLimits& limits);

/// What bounds the work on a model: `given` are bytes of its files, `below` what was taken to read it.
WorkBounds bounds_of(const ModelLimits& limits, std::uint64_t given,
                     std::shared_ptr<const MemoryAccount> below = nullptr);

/// While it lives, the calling thread reads a model within these limits: nodes, outputs and the file's text
/// are counted, too.
class ReadingWithin {
 public:
  /// `bounds`: of the model, by bounds_of(). `path`: what errors call it.
  ReadingWithin(const WorkBounds& bounds, const ModelLimits& limits, const std::string& path);

 private:
  std::atomic<std::uint64_t> nodes_{0};
  GrowingMemory parsed_;
  WorkBounds bounds_;
  const Within here_;
};

}  // namespace lamina
