#include "offline/model_reader.h"

#include <algorithm>

#include "api/inside.h"
#include "api/limit_checks.h"
#include "api/options_table.h"
#include "formats/formats.h"

namespace lamina {
namespace {

/// Tells of each file that is opened.
class WatchedSource final : public ModelSource {
 public:
  WatchedSource(const ModelSource& source, const ModelReader::Seen& seen)
      : ModelSource(source.model()), source_(source), seen_(seen) {
    tell(model());
  }
  std::shared_ptr<const MappedFile> companion(const std::string& extension) const override {
    return tell(source_.companion(extension));
  }
  std::string companion_path(const std::string& extension) const override {
    return source_.companion_path(extension);
  }
  std::shared_ptr<const MappedFile> external_data(const std::string& location) const override {
    return tell(source_.external_data(location));
  }

 private:
  std::shared_ptr<const MappedFile> tell(std::shared_ptr<const MappedFile> file) const {
    if (file && file->identity() && seen_) seen_(file->path());
    return file;
  }
  const ModelSource& source_;
  const ModelReader::Seen& seen_;
};

}  // namespace

std::unique_ptr<const ModelSource> source_of(const Model& of) { return source_of(Inside::of(of)); }

ModelReader::ModelReader(std::string path, ReadOptions options, Seen seen)
    : path_(std::move(path)), options_(std::move(options)), seen_(std::move(seen)) {
  check_options({.limits = options_.limits});
}

ModelReader::ModelReader(Model model, Seen seen)
    : path_(Inside::of(model).path()), model_(std::move(model)), seen_(std::move(seen)) {
  options_.settable = Inside::of(*model_).settable();
  options_.input_shapes = Inside::of(*model_).input_shapes();
  options_.limits = Inside::of(*model_).limits();
}

Loaded ModelReader::read(ReadSettings settings) const {
  if (!model_)
    return read_source(FileSource(path_, options_.weights, options_.limits.external_files), settings);
  const auto& model = Inside::of(*model_);
  if (!model.compiled() && !model.derived()) return read_source(*source_of(*model_), std::move(settings));
  for (const auto& part : model.parts())
    if (seen_ && part.file->identity()) seen_(part.file->path());
  return compiled(settings);
}

/// The model inside of a compiled one, whose shapes are those that it was compiled with.
Loaded ModelReader::compiled(const ReadSettings& settings) const {
  const bool changed = model_ && !Inside::of(*model_).compiled();
  if (!settings.shapes.empty())
    fail(ErrorCode::bad_input, "{}: a {} model has the shapes that it was {} with", path_,
         changed ? "changed" : "compiled", changed ? "changed" : "compiled");
  if (model_) return Inside::of(*model_).loaded();
  const ReadOptions options{.settable = options_.settable,
                            .extensions = options_.extensions,
                            .input_shapes = options_.input_shapes,
                            .limits = options_.limits};
  return Inside::of(Model(path_, options)).loaded();
}

Loaded ModelReader::read_source(const ModelSource& unwatched, ReadSettings settings) const {
  const WatchedSource source(unwatched, seen_);
  if (CompiledFile::is_one(source.model()->bytes())) return compiled(settings);
  settings.settable.insert(settings.settable.end(), options_.settable.begin(), options_.settable.end());
  if (model_)
    settings.extensions = Inside::of(*model_).described().extensions;
  else if (!options_.extensions.empty())
    settings.extensions = std::make_shared<const ExtensionSet>(options_.extensions);
  for (auto& [name, shape] : shapes_of(options_.input_shapes))
    settings.shapes.emplace(name, std::move(shape));
  settings.gate = OperatorGate(options_.limits);
  const ReadingWithin here(bounds_of(options_.limits, source.model()->size()), options_.limits, path_);
  auto loaded = lamina::read(source, settings);
  std::vector<std::string> names;
  for (const ValueId v : loaded.graph.inputs()) names.push_back(loaded.graph.value(v).name);
  for (const auto& [name, value] : settings.frozen) names.push_back(name);
  require_inputs(names, options_.input_shapes, path_);
  return loaded;
}

}  // namespace lamina
