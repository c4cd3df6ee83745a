#pragma once
/// Values of attributes as text: defaults and samples of libraries, and their rules.
#include <optional>
#include <string_view>

#include "graph/op.h"

namespace lamina {

/// The text as the value of an attribute of that kind (LAMINA_BOOL, ...); nothing for what does not fit.
std::optional<Attribute> attribute_of_text(std::int32_t kind, std::string_view text);
/// The text as an attribute of the kind of `like`; nothing where it is none.
std::optional<Attribute> attribute_like(const Attribute& like, std::string_view text);
/// "an integer"
std::string_view name_of_kind(std::int32_t kind);

}  // namespace lamina
