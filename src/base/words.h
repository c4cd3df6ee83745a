#pragma once
/// Words of settings and files: their case, and lists of them. ASCII, the same in every locale.
#include <string>
#include <string_view>
#include <vector>

#include "base/command_api.h"

namespace lamina {

LAMINA_COMMAND_API std::string lower_case(std::string_view text);
LAMINA_COMMAND_API std::string upper_case(std::string_view text);

/// What stands between separators: "a,,b" gives "a", "", "b", and "" gives one that is empty. Pieces are
/// parts of `text`.
LAMINA_COMMAND_API std::vector<std::string_view> pieces_of(std::string_view text, char separator = ',');

}  // namespace lamina
