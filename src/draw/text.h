#pragma once
/// Text for drawings, beyond base/text.h: widths, shortening, wrapping, escaping.
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace lamina {

/// Printable text with & < > " as XML wants them.
std::string escape_xml(std::string_view text, bool keep_lines = false);
/// Printable text in double quotes, line ends as \n.
std::string quote_dot(std::string_view text);

/// Width in a common sans-serif font of that size; wide enough for all of them.
double text_width(std::string_view text, double size, bool bold = false);
std::string shortened_to_width(std::string_view text, double width, double size, bool bold = false);
/// Words into lines of at most that width; at most `lines`, the last one ends with … when there is more.
std::vector<std::string> wrapped(const std::vector<std::string>& words, std::string_view separator,
                                 double width, double size, std::size_t lines);

}  // namespace lamina
