#pragma once
/// The public options about inputs as a PreprocessingRequest has them.
#include "lamina/optimize.h"
#include "offline/preprocessing_layers.h"

namespace lamina {

/// Both throw FaqError or Error(bad_option), whose texts begin with `option`.
std::vector<NamedNumbers> numbers_of(const std::string& option, const std::vector<ChannelValues>& all);
std::vector<LayoutRequest> layout_requests(const std::string& option, const std::vector<LayoutChange>& all);

}  // namespace lamina
