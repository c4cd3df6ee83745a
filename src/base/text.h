#pragma once
/// Text that comes from files and users, made fit to be shown: UTF-8, one line, short.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/command_api.h"

namespace lamina {

/// Bytes of the UTF-8 character at the beginning of a text that is not empty; 0 when it is none, or none to
/// be shown: control characters, those that turn the direction of writing, what XML does not allow.
LAMINA_COMMAND_API std::size_t character_bytes(std::string_view text);

/// Names come from files and may hold anything: broken UTF-8 and characters that are not to be shown become
/// U+FFFD, line ends and tabs spaces (line ends are kept with `keep_lines`).
LAMINA_COMMAND_API std::string printable(std::string_view text, bool keep_lines = false);

constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

/// Characters of printable text.
std::vector<std::string_view> characters(std::string_view text);

/// Number of characters, not bytes.
LAMINA_COMMAND_API std::size_t text_length(std::string_view text);

/// At most `most` characters of printable text (as far as that holds the length itself): beginning and end
/// with the number of all characters between them, "convolution…(1048576 characters)…weight".
LAMINA_COMMAND_API std::string clipped(std::string_view text, std::size_t most);

/// One printable line of at most `most` characters. What is too long first loses from its longest words and
/// quoted names, so that the sense stays, then from its middle.
LAMINA_COMMAND_API std::string one_line(std::string_view text, std::size_t most = 300);

}  // namespace lamina
