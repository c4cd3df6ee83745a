/// The entry of the Caffe reader: a structure in text and weights in a file of their own, either of which may
/// be the model.
#include "formats/caffe/builder.h"
#include "formats/file_format.h"
#include "formats/loaded.h"
#include "formats/read_error.h"

namespace lamina {
namespace {

struct Files {
  std::shared_ptr<const MappedFile> text, weights;  ///< the second may be null
};

/// The file with the structure: without it weights are of little use.
std::shared_ptr<const MappedFile> structure_of(const ModelSource& source) {
  const auto& model = source.model();
  auto text = blaming(FileProblem::no_caffe_text, [&] { return source.companion(".prototxt"); });
  const auto wanted = source.companion_path(".prototxt");
  if (!text)
    fail_reading(FileProblem::no_caffe_text, "{}: has weights only, wanted the network's structure {}",
                 model->path(), wanted.empty() ? "with them" : "in " + wanted);
  if (format_of(*text) == FileFormat::caffe_weights)
    fail_reading(FileProblem::no_caffe_text, "{}: has weights, wanted the structure of {}", text->path(),
                 model->path());
  return text;
}

Files files_of(const ModelSource& source) {
  const auto& model = source.model();
  if (format_of(*model) != FileFormat::caffe_text) return {structure_of(source), model};
  auto weights = source.companion(".caffemodel");
  if (weights && format_of(*weights) == FileFormat::caffe_text)
    fail_reading(FileProblem::caffe_weights, "{}: is a text, wanted a caffemodel", weights->path());
  return {model, std::move(weights)};
}

}  // namespace

Loaded read_caffe(const ModelSource& source, const ReadSettings& settings) {
  const auto files = files_of(source);
  const auto text = blaming(FileProblem::caffe_text, [&] { return ProtoText(files.text); });
  const auto net = blaming(FileProblem::caffe_text, [&] { return caffe::read_net(text); });
  const auto weights =
      files.weights ? caffe::Weights(files.weights) : caffe::Weights(source.companion_path(".caffemodel"));
  Loaded loaded;
  loaded.format = ModelFormat::caffe;
  loaded.version = net.old ? "V1" : "V2";
  loaded.extensions = settings.extensions;
  loaded.graph.name = net.name;
  caffe::Builder(net, text.path(), weights, settings, loaded).run();
  return loaded;
}

}  // namespace lamina
