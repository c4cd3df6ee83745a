#pragma once
/// The layouts of the border with libraries, as rows of our table.
#include "kernels/layout.h"

namespace lamina::extension_kernels {

/// The row of LAMINA_PLAIN, LAMINA_CHANNELS_LAST, LAMINA_BLOCKED_8 or LAMINA_BLOCKED_16; added where needed.
Layout layout_of(std::int32_t border);

}  // namespace lamina::extension_kernels
