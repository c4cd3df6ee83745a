#pragma once
/// Sources of a model's parts: files, or memory.
#include <map>
#include <memory>
#include <string>

#include "base/mapped_file.h"
#include "lamina/limits.h"

namespace lamina {

class ModelSource {
 public:
  explicit ModelSource(std::shared_ptr<const MappedFile> model) : model_(std::move(model)) {}
  virtual ~ModelSource() = default;
  ModelSource(const ModelSource&) = delete;
  ModelSource& operator=(const ModelSource&) = delete;

  /// The ONNX file, the .xml of an IR, either file of a Caffe model.
  const std::shared_ptr<const MappedFile>& model() const { return model_; }
  /// The file that belongs to the model: the one that was given with it, else that of the model's name with
  /// this extension (".bin"). Null when there is none.
  virtual std::shared_ptr<const MappedFile> companion(const std::string& extension) const = 0;
  /// What companion() looks for, to be shown; "" for a model in memory.
  virtual std::string companion_path(const std::string& extension) const = 0;
  /// The file of weights. Throws Error(bad_file) when it does not exist.
  std::shared_ptr<const MappedFile> weights(const std::string& extension = ".bin") const;
  /// The file in which an ONNX tensor has its data, as the tensor calls it. Throws Error(bad_file) when there
  /// is none, and for files that a model must not name.
  virtual std::shared_ptr<const MappedFile> external_data(const std::string& location) const = 0;

 private:
  std::shared_ptr<const MappedFile> model_;
};

/// Files in the model's folder, or below it; its companion may be given by name. Neither the folder's
/// content nor what the model says is the user's: no link is followed beside the model. The model's own path
/// and that of a given companion are the user's, and may be links.
class FileSource : public ModelSource {
 public:
  explicit FileSource(const std::string& path, std::string companion = {},
                      ExternalFiles files = ExternalFiles::beside)
      : ModelSource(MappedFile::open(path)), given_(std::move(companion)), files_(files) {}
  std::shared_ptr<const MappedFile> companion(const std::string& extension) const override;
  std::string companion_path(const std::string& extension) const override;
  std::shared_ptr<const MappedFile> external_data(const std::string& location) const override;

 private:
  std::shared_ptr<const MappedFile> beside(const std::string& name, const char* remedy) const;
  std::string given_;
  ExternalFiles files_;
};

/// Only what is there. `weights`, the companion, may be null.
class MemorySource : public ModelSource {
 public:
  using Files = std::map<std::string, std::shared_ptr<const MappedFile>>;
  MemorySource(std::shared_ptr<const MappedFile> model, std::shared_ptr<const MappedFile> weights,
               const Files& external);
  std::shared_ptr<const MappedFile> companion(const std::string&) const override { return weights_; }
  std::string companion_path(const std::string&) const override { return {}; }
  std::shared_ptr<const MappedFile> external_data(const std::string& location) const override;

 private:
  std::shared_ptr<const MappedFile> weights_;
  Files external_;
};

}  // namespace lamina
