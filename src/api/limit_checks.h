#pragma once
/// What a model that has been read is held against.
#include "api/loaded_model.h"

namespace lamina {

/// Nodes, outputs, elements, operators and files. Throws Error(over_limit).
void require_within(const LoadedModel& model, const ModelLimits& limits);

/// What bounds the work on a model: `given` are bytes of its files, `below` what was taken to read it.
WorkBounds bounds_of(const ModelLimits& limits, std::uint64_t given,
                     std::shared_ptr<const MemoryAccount> below = nullptr);

}  // namespace lamina
