#pragma once
/// Where the parts of a model come from: files, or memory.
#include <map>
#include <memory>
#include <string>

#include "base/mapped_file.h"

namespace lamina {

class ModelSource {
 public:
  explicit ModelSource(std::shared_ptr<const MappedFile> model) : model_(std::move(model)) {}
  virtual ~ModelSource() = default;
  ModelSource(const ModelSource&) = delete;
  ModelSource& operator=(const ModelSource&) = delete;

  /// The ONNX file, or the .xml of an IR.
  const std::shared_ptr<const MappedFile>& model() const { return model_; }
  /// The .bin of an IR. Throws Error(bad_file) when there is none.
  virtual std::shared_ptr<const MappedFile> weights() const = 0;
  /// The file in which an ONNX tensor has its data, as the tensor calls it. Throws Error(bad_file) when there
  /// is none, and for files that a model must not name.
  virtual std::shared_ptr<const MappedFile> external_data(const std::string& location) const = 0;

 private:
  std::shared_ptr<const MappedFile> model_;
};

/// Files in the model's folder.
class FileSource : public ModelSource {
 public:
  explicit FileSource(const std::string& path) : ModelSource(MappedFile::open(path)) {}
  std::shared_ptr<const MappedFile> weights() const override;
  std::shared_ptr<const MappedFile> external_data(const std::string& location) const override;
};

/// Only what is there. `weights` may be null.
class MemorySource : public ModelSource {
 public:
  using Files = std::map<std::string, std::shared_ptr<const MappedFile>>;
  MemorySource(std::shared_ptr<const MappedFile> model, std::shared_ptr<const MappedFile> weights,
               Files external);
  std::shared_ptr<const MappedFile> weights() const override;
  std::shared_ptr<const MappedFile> external_data(const std::string& location) const override;

 private:
  std::shared_ptr<const MappedFile> weights_;
  Files external_;
};

}  // namespace lamina
