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
/// Decides, takes the processors, and logs each difference between what was asked and what is used. Throws
/// Error(bad_option).
Settled settle(const Options& options, const InferenceTime& time, const Logger& log);
/// The same without taking anything, for any machine. `taken`: processors of others.
Settings settings_for(const Options& options, const Topology& topology, const std::set<int>& taken = {});

/// The precision that runs there, and why it is not what was asked for, or which key decided; else empty.
std::pair<Precision, std::string> used_precision(const Options& options, const Machine& machine);

/// What only a compiled model knows.
struct ModelFacts {
  std::string name;
  bool from_cache = false;
};
/// All of them; without a model, those of the device. `topology`: what RANGE_FOR_STREAMS is about.
std::vector<Property> list_properties(const Settings& settings, const Topology& topology,
                                      const ModelFacts* model = nullptr);
/// Throws Error(bad_option) that names the nearest key.
const Property& find_property(const std::vector<Property>& properties, std::string_view key);

}  // namespace lamina
