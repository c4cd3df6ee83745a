#pragma once
/// Types of layers as files of IR write them.
#include <algorithm>

#include "formats/ir/text.h"
#include "formats/type_table.h"

namespace lamina::ir {

/// Files do not agree on case.
struct IgnoringCase {
  bool operator()(std::string_view a, std::string_view b) const {
    const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                        [&](char x, char y) { return small(x) < small(y); });
  }
};

template <class Function>
using TypeTable = lamina::TypeTable<Function, IgnoringCase>;

}  // namespace lamina::ir
