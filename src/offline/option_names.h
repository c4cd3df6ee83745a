#pragma once
/// How errors and notes call options: as the command line does, "--input_shape", or by their fields.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamina {

/// Options as the command line has them, and their fields.
using OptionFields = std::vector<std::pair<std::string_view, std::string_view>>;

/// The text with fields in the place of options.
std::string with_fields(std::string_view text, const OptionFields& fields);

}  // namespace lamina
