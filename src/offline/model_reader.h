#pragma once
/// Reads a model as often as a conversion needs it: its files, or what a public Model was read from.
#include <functional>
#include <memory>
#include <string>

#include "formats/loaded.h"
#include "lamina/model.h"

namespace lamina {

class ModelReader {
 public:
  /// Called with the path of each file that is opened, before it is read; what it throws ends the reading.
  using Seen = std::function<void(const std::string& path)>;

  ModelReader(std::string path, ReadOptions options, Seen seen);
  ModelReader(Model model, Seen seen);

  const std::string& path() const { return path_; }
  const ModelLimits& limits() const { return options_.limits; }
  /// Settable inputs, libraries and limits are the model's own, besides those of the settings.
  Loaded read(ReadSettings settings) const;

 private:
  Loaded read_source(const ModelSource& source, ReadSettings settings) const;
  Loaded compiled(const ReadSettings& settings) const;

  std::string path_;
  ReadOptions options_;
  std::optional<Model> model_;
  Seen seen_;
};

/// What the model was read from, to be read again. Throws Error(unsupported) for a compiled model and for one
/// whose graph is not that of its files.
std::unique_ptr<const ModelSource> source_of(const Model& model);

}  // namespace lamina
