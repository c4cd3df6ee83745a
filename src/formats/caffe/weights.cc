#include "formats/caffe/weights.h"

#include "formats/read_error.h"
#include "formats/wire.h"

namespace lamina::caffe {
namespace {

/// The name may stand behind the blobs.
struct LayerBlobs {
  std::string_view name;
  Blobs blobs;
};

constexpr std::uint32_t kLayer = 100, kOldLayer = 2;
// A few bytes of a file may be a layer or a blob.
constexpr std::size_t kMost = 1'000'000, kMostOfALayer = 1000;

LayerBlobs read_layer(std::string_view message, std::uint32_t name_field, std::uint32_t blobs_field) {
  LayerBlobs layer;
  WireReader in(message, "LayerParameter");
  while (in.next()) {
    if (in.field() == name_field)
      layer.name = in.bytes();
    else if (in.field() == blobs_field && layer.blobs.size() < kMostOfALayer)
      layer.blobs.push_back(read_blob(in.bytes()));
    else
      in.skip();
  }
  return layer;
}

}  // namespace

Weights::Weights(const std::shared_ptr<const MappedFile>& file) : file_(file) {
  try {
    std::size_t blobs = 0;
    WireReader in(file->text(), "NetParameter");
    while (in.next()) {
      const auto field = in.field();
      if (field != kLayer && field != kOldLayer) {
        in.skip();
        continue;
      }
      auto layer = field == kLayer ? read_layer(in.bytes(), 1, 7) : read_layer(in.bytes(), 4, 6);
      blobs += layer.blobs.size();
      layers_.try_emplace(layer.name, std::move(layer.blobs));
      if (layers_.size() > kMost || blobs > kMost)
        fail(ErrorCode::bad_file, "has more than {} layers or blobs", kMost);
    }
  } catch (const protozero::exception& e) {
    fail_reading(FileProblem::caffe_weights, "{}: is no caffemodel or is damaged ({})", file->path(),
                 words_of(e));
  } catch (const Error& e) {
    throw ReadError(e, fmt::format("{}: {}", file->path(), e.what()), FileProblem::caffe_weights);
  }
  if (layers_.empty())
    fail_reading(FileProblem::caffe_weights, "{}: has no layer, wanted a caffemodel", file->path());
}

const Blobs* Weights::find(std::string_view layer) const {
  const auto it = layers_.find(layer);
  return it == layers_.end() ? nullptr : &it->second;
}

}  // namespace lamina::caffe
