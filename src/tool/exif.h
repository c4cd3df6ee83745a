#pragma once
/// What cameras write beside the pixels.
#include <cstddef>
#include <span>

#include "tool/image.h"

namespace lamina::tool {

/// The orientation in a block of EXIF data (a TIFF header and what follows): 1 to 8; 1, upright, when it is
/// absent or damaged.
int exif_orientation(std::span<const std::byte> tiff);

/// Upright, and says so; as it is for orientation 1.
Image turned_upright(Image image, int orientation);

}  // namespace lamina::tool
