#pragma once
/// Resizing by weights that are made while the file is read.
#include "formats/tensorflow/call.h"

namespace lamina::tensorflow {

/// Cubic weights in steps of 1/1024, as TensorFlow has them. NotSupported while sizes are not known.
Values resize_bicubic(Call& c);

}  // namespace lamina::tensorflow
