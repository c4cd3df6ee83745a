#pragma once
/// How tensors lie in memory: a table that kernels can add to.
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/tensor.h"

namespace lamina {

/// A row of the table; those named here are always there. plain: as the shape says. channels_last: N,
/// spatial..., C (rank 3 and more). channels_last_bits: booleans as bits (kernels/bits.h).
enum class Layout : std::uint8_t { plain, channels_last, channels_last_bits };

/// Memory in which elements do not lie at strides: bits, blocks of channels. All functions take the type and
/// the shape that the tensor has in the graph.
struct PackedLayout {
  using Copy = std::function<void(ElementType type, const Dims& shape, const void* from, void* to)>;
  std::function<bool(ElementType type, const Dims& shape)> takes;  ///< whether a tensor can lie so
  std::function<std::size_t(ElementType type, const Dims& shape)> bytes;
  Copy pack, unpack;  ///< of plain memory, and to it; thread-safe
  /// Plans may copy from plain and to it while they run. Else a value lies so only where all that make and
  /// read it take that.
  bool copied = true;
  std::optional<ElementType> element = {};  ///< what it is called where it is shown, if not the tensor's own
};

struct LayoutInfo {
  std::string name;  ///< one word without commas
  /// The axes of a tensor of that rank, from the outermost in memory to the innermost.
  std::function<std::vector<std::size_t>(std::size_t rank)> order;
  std::shared_ptr<const PackedLayout> packing = {};  ///< null: elements lie at strides
};

/// One more, for the rest of the process. Thread-safe. Throws Error(bad_call) for a name that is taken or is
/// no word, and when there are 64.
Layout add_layout(LayoutInfo info);
const LayoutInfo& info_of(Layout layout);
inline const PackedLayout* packing_of(Layout layout) { return info_of(layout).packing.get(); }
std::string_view name_of(Layout layout);
std::optional<Layout> layout_named(std::string_view name);

/// Strides, in elements, of the logical axes of a dense tensor in that layout, which is no packing.
Dims strides_of(const Dims& shape, Layout layout);
/// Bytes of a dense tensor in that layout.
std::size_t memory_bytes(ElementType type, const Dims& shape, Layout layout);
/// A dense tensor of that shape is the same bytes in both.
bool same_bytes(const Dims& shape, Layout a, Layout b);

}  // namespace lamina
