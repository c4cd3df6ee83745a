#pragma once
/// Default boxes of an SSD.
#include "formats/caffe/call.h"

namespace lamina::caffe {

Values convert_prior_box(const Call& c);
Values convert_prior_box_clustered(const Call& c);

}  // namespace lamina::caffe
