#pragma once
/// How IR spells numbers, lists, types and shapes. Locale-independent; nothing is returned for what is
/// malformed.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op.h"

namespace lamina::ir {

std::string_view trim(std::string_view text);
std::string lower(std::string_view text);
bool same_word(std::string_view a, std::string_view b);  ///< without regard to case

/// "1, 2,3" or "[1,2,3]" in pieces, trimmed; an empty text is an empty list, a trailing comma is ignored.
std::vector<std::string_view> split_list(std::string_view text);
/// Tensor names: separated by commas, "\," is a comma inside a name.
Strings split_names(std::string_view text);

std::optional<std::int64_t> parse_integer(std::string_view text);  ///< "1.0" is an integer too
std::optional<double> parse_number(std::string_view text);         ///< also inf, -inf, nan
std::optional<bool> parse_boolean(std::string_view text);
std::optional<Ints> parse_integers(std::string_view text);
std::optional<Floats> parse_numbers(std::string_view text);
/// "f32" or "FP32", "boolean" or "BOOL", ...
std::optional<ElementType> parse_element_type(std::string_view text);
/// A type that OpenVINO has and lamina has not ("nf4", "string", ...).
bool is_foreign_element_type(std::string_view text);
/// "?,3,1..10,..7,-1", brackets optional; "..." is unknown rank.
std::optional<Shape> parse_shape(std::string_view text);

}  // namespace lamina::ir
