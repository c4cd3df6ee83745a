/// The entry of the Caffe reader: a structure in text and weights in a file of their own, either of which may
/// be the model.
#include "base/error.h"
#include "formats/caffe/builder.h"
#include "formats/file_format.h"
#include "formats/loaded.h"

namespace lamina {
namespace {

struct Files {
  std::shared_ptr<const MappedFile> text, weights;  ///< the second may be null
};

Files files_of(const ModelSource& source) {
  const auto& model = source.model();
  if (format_of(*model) == FileFormat::caffe_text) {
    auto weights = source.companion(".caffemodel");
    if (weights && format_of(*weights) == FileFormat::caffe_text)
      fail(ErrorCode::bad_file, "{}: is a text, wanted a caffemodel", weights->path());
    return {model, std::move(weights)};
  }
  try {
    return {source.weights(".prototxt"), model};
  } catch (const Error& e) {
    fail(ErrorCode::bad_file, "{}: holds weights only, and of the structure: {}", model->path(), e.what());
  }
}

}  // namespace

Loaded read_caffe(const ModelSource& source, const ReadSettings& settings) {
  const auto files = files_of(source);
  const ProtoText text(files.text);
  const auto net = caffe::read_net(text);
  const auto weights =
      files.weights ? caffe::Weights(files.weights) : caffe::Weights(source.companion_path(".caffemodel"));
  Loaded loaded;
  loaded.format = "Caffe";
  loaded.version = net.old ? "V1" : "V2";
  loaded.extensions = settings.extensions;
  loaded.graph.name = net.name;
  caffe::Builder(net, text.path(), weights, settings, loaded).run();
  return loaded;
}

}  // namespace lamina
