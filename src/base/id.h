#pragma once
/// Indices that cannot be mixed up.
#include <compare>
#include <cstdint>
#include <functional>

namespace lamina {

template <class Tag>
struct Id {
  std::uint32_t index = UINT32_MAX;
  constexpr bool valid() const { return index != UINT32_MAX; }
  constexpr auto operator<=>(const Id&) const = default;
};

using NodeId = Id<struct NodeTag>;
using ValueId = Id<struct ValueTag>;
using SourceId = Id<struct SourceTag>;

}  // namespace lamina

template <class Tag>
struct std::hash<lamina::Id<Tag>> {
  std::size_t operator()(lamina::Id<Tag> id) const noexcept { return id.index; }
};
