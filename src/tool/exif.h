#pragma once
/// EXIF data, which cameras write beside the pixels.
#include <cstddef>
#include <span>

#include "tool/image.h"

namespace lamina::tool {

/// The orientation in a block of EXIF data (a TIFF header and what follows): 1 to 8; 1, upright, when it is
/// absent or damaged.
int exif_orientation(std::span<const std::byte> tiff);

/// Turns the image upright and notes that; an image of orientation 1 stays as it is.
Image turned_upright(Image image, int orientation);

}  // namespace lamina::tool
