#include "kernels/extension/layouts.h"

#include "extension/arrange.h"
#include "lamina/extension.h"

namespace lamina::extension_kernels {
namespace {

Layout blocked(const char* name, std::int32_t border) {
  PackedLayout packing;
  packing.takes = [border](ElementType type, const Dims& shape) {
    return can_lie(type, shape.size(), border);
  };
  packing.bytes = [border](ElementType type, const Dims& shape) { return bytes_in(type, shape, border); };
  packing.pack = [border](ElementType type, const Dims& shape, const void* from, void* to) {
    arrange(type, shape, border, from, to);
  };
  packing.unpack = [border](ElementType type, const Dims& shape, const void* from, void* to) {
    make_plain(type, shape, border, from, to);
  };
  const auto order = [](std::size_t rank) {
    std::vector<std::size_t> axes(rank);
    for (std::size_t i = 0; i < rank; ++i) axes[i] = i;
    return axes;
  };
  return add_layout({name, order, std::make_shared<const PackedLayout>(std::move(packing))});
}

}  // namespace

Layout layout_of(std::int32_t border) {
  switch (border) {
    case LAMINA_CHANNELS_LAST:
      return Layout::channels_last;
    case LAMINA_BLOCKED_8: {
      static const Layout row = blocked("blocked_8", LAMINA_BLOCKED_8);
      return row;
    }
    case LAMINA_BLOCKED_16: {
      static const Layout row = blocked("blocked_16", LAMINA_BLOCKED_16);
      return row;
    }
    default:
      return Layout::plain;
  }
}

}  // namespace lamina::extension_kernels
