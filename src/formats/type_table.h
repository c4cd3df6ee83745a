#pragma once
/// What is done with layers, nodes or operators of a type.
#include <functional>
#include <map>
#include <string_view>

#include "graph/op.h"

namespace lamina {

template <class Function, class Less = std::less<>>
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
  std::map<std::string_view, Function, Less> rows_;
};

}  // namespace lamina
