#pragma once
/// Words of options, as the command and OpenVINO's tools have them: sizes, types, layouts, keys.
#include <optional>
#include <string>
#include <string_view>

#include "base/command_api.h"
#include "lamina/partial_shape.h"
#include "lamina/tensor.h"

namespace lamina {

/// Without spaces and tabs around it.
LAMINA_COMMAND_API std::string_view trimmed(std::string_view text);
/// "text" of "(text)" and "[text]"; nothing for other texts.
std::optional<std::string_view> in_brackets(std::string_view text);

/// A size of a shape: 3, ?, -1, 1..10, ..10, 1..; nothing for other words.
LAMINA_COMMAND_API std::optional<Dimension> size_said(std::string_view word);
/// "f32", "FP32", "boolean", "bool"; nothing for other words.
LAMINA_COMMAND_API std::optional<ElementType> element_type_said(std::string_view word);

/// The layout in capitals, without a name: "NHWC", "N...". Throws Error(bad_option), which begins with
/// `what`.
LAMINA_COMMAND_API std::string layout_letters(const std::string& what, std::string_view layout);
/// With a letter for each of so many axes; nothing where it has more or fewer.
LAMINA_COMMAND_API std::optional<std::string> spread_layout(std::string letters, std::size_t rank);

/// The key of a setting without KEY_, which may stand in front of it.
LAMINA_COMMAND_API std::string_view bare_key(std::string_view key);

}  // namespace lamina
