#pragma once
/// The weights of a Caffe network: net.caffemodel. Of its layers only names and blobs are read: other fields
/// have other meanings in the forks of Caffe.
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "formats/caffe/blob.h"

namespace lamina::caffe {

class Weights {
 public:
  /// Weights of no file.
  explicit Weights(std::string wanted) : wanted_(std::move(wanted)) {}
  /// Throws Error(bad_file) naming the path.
  explicit Weights(const std::shared_ptr<const MappedFile>& file);
  bool is_there() const { return file_ != nullptr; }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  /// The file that there should be; "" for a model in memory.
  const std::string& wanted() const { return wanted_; }
  /// The blobs of the first layer of that name; null when there is none.
  const Blobs* find(std::string_view layer) const;

 private:
  std::string wanted_;
  std::shared_ptr<const MappedFile> file_;
  std::unordered_map<std::string_view, Blobs> layers_;
};

}  // namespace lamina::caffe
