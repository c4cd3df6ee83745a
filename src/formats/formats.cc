#include "formats/formats.h"

#include "base/error.h"
#include "formats/file_format.h"

namespace lamina {

Loaded read(const ModelSource& source, const ReadSettings& settings) {
  const auto& settable = settings.settable;
  const auto& file = *source.model();
  if (file.size() == 0) fail(ErrorCode::bad_file, "{}: is empty, wanted a model", file.path());
  const auto format = format_of(file);
  const bool is_caffe = format == FileFormat::caffe_text || format == FileFormat::caffe_weights;
  if (format == FileFormat::onnx) return read_onnx(source, settings);
  if (format == FileFormat::tensorflow) return read_tensorflow(source, settings);
  if (!settable.empty())
    fail(ErrorCode::bad_option, "{}: settable \"{}\": {} has no inputs with values", file.path(), settable[0],
         is_caffe                             ? "a Caffe model"
         : format == FileFormat::onednn_graph ? "a graph of oneDNN Graph"
                                              : "an IR");
  if (format == FileFormat::onednn_graph) return read_onednn_graph(source, settings);
  return is_caffe ? read_caffe(source, settings) : read_ir(source, settings);
}

Loaded read_file(const std::string& path) { return read(FileSource(path)); }
Loaded read_onnx(const std::string& path) { return read_onnx(FileSource(path)); }
Loaded read_ir(const std::string& xml_path) { return read_ir(FileSource(xml_path)); }

Graph read_model(const std::string& path) { return read_file(path).graph; }

}  // namespace lamina
