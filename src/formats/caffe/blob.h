#pragma once
/// Caffe's arrays of numbers, in caffemodels and in files of their own (mean images).
#include <memory>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "graph/op.h"

namespace lamina::caffe {

/// A BlobProto, whose values are read when they are asked for.
struct Blob {
  Dims dims;              ///< as the file says: shape, or the old num, channels, height, width
  std::size_t count = 0;  ///< values that are there
  bool doubles = false;   ///< they are `double_data`
  std::string_view message;
  std::string_view run;  ///< where all of them are one packed run of floats
  /// f32 under these dims, whose product is `count`; shared with the file where that is possible.
  Tensor tensor(const Dims& dims, const std::shared_ptr<const MappedFile>& file) const;
};
using Blobs = std::vector<Blob>;

/// Throws Error(bad_file), protozero::exception.
Blob read_blob(std::string_view message);

}  // namespace lamina::caffe
