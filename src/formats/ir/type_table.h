#pragma once
/// What is done with layers or operators of a type.
#include <algorithm>
#include <map>
#include <string_view>

#include "formats/ir/text.h"

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
class TypeTable {
 public:
  /// `type` is a literal.
  void add(std::string_view type, Function function) { rows_.emplace(type, function); }
  /// Null when nothing was added for the type.
  Function find(std::string_view type) const {
    const auto it = rows_.find(type);
    return it == rows_.end() ? nullptr : it->second;
  }
  /// Sorted.
  Strings names() const {
    Strings out;
    for (const auto& [type, function] : rows_) out.emplace_back(type);
    return out;
  }

 private:
  std::map<std::string_view, Function, IgnoringCase> rows_;
};

}  // namespace lamina::ir
