#include "formats/caffe/blob.h"

#include "base/limits.h"
#include "formats/wire.h"
#include "graph/shape.h"

namespace lamina::caffe {
namespace {

Dims read_shape(std::string_view message) {
  Dims dims;
  WireReader in(message, "BlobShape");
  while (in.next())
    if (in.field() == 1)
      in.integers(dims);
    else
      in.skip();
  return dims;
}

constexpr std::uint32_t kData = 5, kDoubles = 8;

/// A field with values: how many, and where they are when they are packed.
void count_values(WireReader& in, Blob& blob) {
  const bool doubles = in.field() == kDoubles;
  if (blob.doubles && !doubles) return in.skip();
  if (doubles && !blob.doubles) {  // then there are no others
    blob.doubles = true;
    blob.count = 0;
  }
  blob.run = {};
  if (!in.packed()) {
    ++blob.count;
    return in.skip();
  }
  const std::size_t size = doubles ? sizeof(double) : sizeof(float);
  const auto bytes = in.bytes();
  if (bytes.size() % size != 0)
    fail(ErrorCode::bad_file, "a blob has {} bytes of values, wanted a multiple of {}", bytes.size(), size);
  if (blob.count == 0 && !doubles) blob.run = bytes;
  blob.count += bytes.size() / size;
}

}  // namespace

Blob read_blob(std::string_view message) {
  Blob blob;
  blob.message = message;
  Dims old;
  bool has_shape = false;
  WireReader in(message, "BlobProto");
  while (in.next()) {
    const auto field = in.field();
    if (field >= 1 && field <= 4) {
      old.resize(4, 1);
      old[field - 1] = in.integer();
    } else if (field == 7) {
      blob.dims = read_shape(in.bytes());
      has_shape = true;
    } else if (field == kData || field == kDoubles) {
      count_values(in, blob);
    } else {
      in.skip();
    }
  }
  if (!has_shape) blob.dims = old;
  if (blob.dims.size() > Limits::kRank) fail(ErrorCode::bad_file, "a blob has rank {}", blob.dims.size());
  for (const auto size : blob.dims)
    if (size < 0)
      fail(ErrorCode::bad_file, "a blob has shape {}, wanted sizes of 0 or more", to_string(blob.dims));
  if (!extent_of(blob.dims))
    fail(ErrorCode::bad_file, "a blob has shape {}, which is too large", to_string(blob.dims));
  return blob;
}

Tensor Blob::tensor(const Dims& wanted, const std::shared_ptr<const MappedFile>& file) const {
  if (count != 0 && run.size() == count * sizeof(float))
    return Tensor::share(ElementType::f32, wanted, file, run.data());
  std::vector<float> values;
  std::vector<double> wide;
  WireReader in(message, "BlobProto");
  while (in.next()) {
    if (in.field() == kDoubles && doubles)
      in.doubles(wide);
    else if (in.field() == kData && !doubles)
      in.floats(values);
    else
      in.skip();
  }
  if (doubles) values.assign(wide.begin(), wide.end());
  return Tensor::of<float>(wanted, values);
}

}  // namespace lamina::caffe
