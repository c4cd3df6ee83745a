#pragma once
/// Text for tables and command lines, beyond base/text.h.
#include <string>
#include <string_view>

#include "base/command_api.h"
#include "base/text.h"

namespace lamina {

/// "12.3 MB": powers of 1000.
LAMINA_COMMAND_API std::string human_bytes(double bytes);

/// "it's" as 'it'\''s': a word of a shell's command line.
LAMINA_COMMAND_API std::string shell_word(const std::string& word);

/// At most `length` characters: the beginning and the end are kept, "conv…weight"; ends of paths say most.
std::string shortened(std::string_view text, std::size_t length);
/// A cell of a table on standard output, filled with spaces to that length. What is longer is shortened on a
/// terminal, where lines would break; in a pipe or file it stays whole.
LAMINA_COMMAND_API std::string padded(std::string_view text, std::size_t length);

}  // namespace lamina
