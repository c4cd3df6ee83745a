#pragma once
/// Layers whose operator a library of custom layers has, under the domain "caffe".
#include "extension/custom_op.h"
#include "formats/caffe/call.h"

namespace lamina::caffe {

inline constexpr std::string_view kDomain = "caffe";

/// Attributes are the fields of the layer's `..._param`, as far as they are declared; inputs the bottoms,
/// then the blobs.
Values make_custom(const Call& c, std::shared_ptr<const DeclaredOperation> operation);

}  // namespace lamina::caffe
