/// How `lamina optimize` reads a model: with shapes and values of inputs, and never what it would overwrite.
#include <filesystem>

#include "api/inside.h"
#include "api/limit_checks.h"
#include "formats/formats.h"
#include "saved/container.h"
#include "tool/optimize.h"

namespace lamina::tool {
namespace {

void refuse_to_overwrite(const IrFiles& files, const std::string& part) {
  auto targets = files.reports;
  targets.insert(targets.end(), {files.xml, files.bin});
  for (const auto& target : targets)
    if (std::error_code ignored; std::filesystem::equivalent(part, target, ignored))
      throw UsageError(
          fmt::format("{} would be overwritten, which is the model itself; wanted another name", target));
}

/// Looks at each file that is opened.
class WatchedSource final : public ModelSource {
 public:
  WatchedSource(const ModelSource& source, const IrFiles& files)
      : ModelSource(source.model()), source_(source), files_(files) {
    seen(model());
  }
  std::shared_ptr<const MappedFile> companion(const std::string& extension) const override {
    return seen(source_.companion(extension));
  }
  std::string companion_path(const std::string& extension) const override {
    return source_.companion_path(extension);
  }
  std::shared_ptr<const MappedFile> external_data(const std::string& location) const override {
    return seen(source_.external_data(location));
  }

 private:
  std::shared_ptr<const MappedFile> seen(std::shared_ptr<const MappedFile> file) const {
    if (file) refuse_to_overwrite(files_, file->path());
    return file;
  }
  const ModelSource& source_;
  const IrFiles& files_;
};

/// The model inside of a compiled one, whose shapes are those that it was compiled with.
Loaded read_compiled(const OptimizeCommand& c, const ReadSettings& known) {
  const auto model = Inside::read(
      c.model(),
      {.settable = c.common.settable, .extensions = c.common.extensions, .limits = c.common.options().limits},
      known.shapes);
  return Inside::of(model).loaded();
}

}  // namespace

Reader reader_of(const OptimizeCommand& c, const IrFiles& files) {
  return [&c, &files](ReadSettings settings) {
    if (!c.input_proto.empty() && !c.common.weights.empty())
      throw UsageError("--weights: wanted without --input_proto, which names the model's other file, too");
    const auto limits = c.common.options().limits;
    const FileSource file(c.model(), c.input_proto + c.common.weights, limits.external_files);
    const WatchedSource source(file, files);
    if (CompiledFile::is_one(source.model()->bytes())) return read_compiled(c, settings);
    settings.settable.insert(settings.settable.end(), c.common.settable.begin(), c.common.settable.end());
    if (!c.common.extensions.empty())
      settings.extensions = std::make_shared<const ExtensionSet>(c.common.extensions);
    settings.gate = OperatorGate(limits);
    const ReadingWithin here(bounds_of(limits, source.model()->size()), limits, c.model());
    return read(source, settings);
  };
}

}  // namespace lamina::tool
