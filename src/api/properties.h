#pragma once
/// Settings and facts as users read them.
#include <string>
#include <vector>

#include "api/options_table.h"
#include "base/topology.h"

namespace lamina {

/// Facts for properties that only a compiled model has.
struct ModelFacts {
  std::string name;
  bool from_cache = false;
  std::string cache_reason = {};  ///< which entry it came from, or why from none
};
/// A property: what was asked for, what is used, and why.
Property property_of(const OptionRow& row, const Settings& settings);
/// All of them; without a model, those of the device. `topology`: what RANGE_FOR_STREAMS is about.
std::vector<Property> list_properties(const Settings& settings, const Topology& topology,
                                      const ModelFacts* model = nullptr);
/// Throws Error(bad_option) that names the nearest key.
const Property& find_property(const std::vector<Property>& properties, std::string_view key);

}  // namespace lamina
