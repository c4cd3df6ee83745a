#pragma once
/// The options of OpenVINO's Model Optimizer, in its spellings, for `lamina optimize`.
#include <map>
#include <string>
#include <vector>

#include "tool/options.h"

namespace lamina::tool {

struct ModelOptimizerWords {
  std::vector<std::string> words;            ///< in the options of the verb
  std::map<std::string, std::string> typed;  ///< option of the verb: as it was spelt
};

/// The words after `optimize`: long names may be shortened, short ones become long, flags with a value as
/// "--silent True" become "--silent=true". What has no effect here becomes --idle with a sentence. `known`:
/// options of the verb, "--disable", which beginnings may mean, too. Throws UsageError for what cannot be
/// done.
ModelOptimizerWords translate_model_optimizer(const std::vector<std::string>& words,
                                              const std::vector<std::string>& known);

/// True if an option was given that only the Model Optimizer has.
bool speaks_model_optimizer(const OptionSet& options);

/// "--input_model", "-ms", ...: for suggestions.
std::vector<std::string> model_optimizer_names();

}  // namespace lamina::tool
