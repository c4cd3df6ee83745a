#pragma once
/// Resolves options to the settings that a model gets on this machine.
#include <set>
#include <string>
#include <vector>

#include "api/options_table.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/processor_locks.h"

namespace lamina {

/// Where a model runs: the streams that options get on this machine, and the processors that they hold.
struct ResolvedSettings {
  Settings settings;
  HeldProcessors held;
};
/// Sets the precision that its options get on that machine, and why.
void decide_precision(Settings& settings, const Machine& machine);
/// What the precision that was asked for, and the one that is used, mean for a model.
std::vector<std::string> precision_sentences(const Settings& settings);
/// Decides where, by the options of `s.settings`, whose precision is decided; takes the processors, and logs
/// each difference between what was asked and what is used. Throws Error(bad_option).
void resolve(ResolvedSettings& s, const InferenceTime& time, const Logger& log);
/// Precision and places without taking anything, for any machine. `taken`: processors of others; `arena`:
/// threads_of_own_arena().
Settings settings_for(const Options& options, const Topology& topology, const std::set<int>& taken = {},
                      int arena = 0);
/// Threads for the work before a model's streams are decided, on this machine.
int threads_to_compile(const Options& options);

}  // namespace lamina
