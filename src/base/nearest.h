#pragma once
/// What a mistyped name was meant to be.
#include <string>
#include <string_view>
#include <vector>

#include "base/command_api.h"

namespace lamina {

/// The nearest of the candidates by letters added, left out, replaced or swapped, without regard to case and
/// leading hyphens (which decide between equally near ones); empty when none is near: more than a third of
/// the letters wrong, or any of one or two.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// `, did you mean "x"?`, or nothing.
LAMINA_COMMAND_API std::string did_you_mean(std::string_view name,
                                            const std::vector<std::string>& candidates);

}  // namespace lamina
