#pragma once
/// Settings and facts as users read them, and the way from options to settings.
#include <functional>
#include <string>
#include <vector>

#include "api/options_table.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/processor_locks.h"

namespace lamina {

/// Where a model runs: the streams that options get on this machine, and the processors that they hold.
struct Settled {
  Settings settings;
  HeldProcessors held;
};
/// The precision that its options get on that machine.
void decide_precision(Settings& settings, const Machine& machine);
/// What the precision that was asked for, and the one that is used, mean for a model.
std::vector<std::string> precision_sentences(const Settings& settings);
/// Decides where, by the options of `s.settings`, whose precision is decided; takes the processors, and logs
/// each difference between what was asked and what is used. Throws Error(bad_option).
void settle(Settled& s, const InferenceTime& time, const Logger& log);
/// Both without taking anything, for any machine. `taken`: processors of others; `arena`:
/// threads_of_own_arena().
Settings settings_for(const Options& options, const Topology& topology, const std::set<int>& taken = {},
                      int arena = 0);
/// Of this machine, for what comes before a model's streams are decided.
int threads_to_compile(const Options& options);

/// What only a compiled model knows.
struct ModelFacts {
  std::string name;
  bool from_cache = false;
  std::string cache_reason = {};  ///< which entry it came from, or why from none
};
/// All of them; without a model, those of the device. `topology`: what RANGE_FOR_STREAMS is about.
std::vector<Property> list_properties(const Settings& settings, const Topology& topology,
                                      const ModelFacts* model = nullptr);
/// Throws Error(bad_option) that names the nearest key.
const Property& find_property(const std::vector<Property>& properties, std::string_view key);

}  // namespace lamina
