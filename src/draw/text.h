#pragma once
/// Text for drawings and tables, beyond base/text.h: widths, shortening, wrapping, escaping.
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace lamina {

/// Printable text with & < > " as XML wants them.
std::string escape_xml(std::string_view text, bool keep_lines = false);
/// Printable text in double quotes, line ends as \n.
std::string quote_dot(std::string_view text);

/// "12.3 MB": powers of 1000.
std::string human_bytes(double bytes);

/// "it's" as 'it'\''s': a word of a shell's command line.
std::string shell_word(const std::string& word);

/// At most `length` characters: the beginning and the end are kept, "conv…weight"; ends of paths say most.
std::string shortened(std::string_view text, std::size_t length);
/// A cell of a table on standard output, filled with spaces to that length. What is longer is shortened on a
/// terminal, where lines would break; in a pipe or file it stays whole.
std::string padded(std::string_view text, std::size_t length);

/// Width in a common sans-serif font of that size; wide enough for all of them.
double text_width(std::string_view text, double size, bool bold = false);
std::string shortened_to_width(std::string_view text, double width, double size, bool bold = false);
/// Words into lines of at most that width; at most `lines`, the last one ends with … when there is more.
std::vector<std::string> wrapped(const std::vector<std::string>& words, std::string_view separator,
                                 double width, double size, std::size_t lines);

}  // namespace lamina
