#pragma once
/// Remembers the hashes of files' contents, so that they need not be read again.
#include <optional>
#include <string>

#include "base/hash.h"
#include "base/mapped_file.h"

namespace lamina {

/// Nobody has written into it since it was opened, as far as its file system knows; another file may have its
/// name now.
bool unchanged(const MappedFile& file);

/// A small file of records, each under a checksum. What cannot be read or written is forgotten: no errors.
class HashMemo {
 public:
  /// `path`: of the file; empty: nothing is remembered.
  explicit HashMemo(std::string path) : path_(std::move(path)) {}

  /// Hash of a file's content, remembered or computed. Nothing when the file was changed in place since it
  /// was opened.
  std::optional<Hash128> content_of(const MappedFile& file) const;

 private:
  std::string path_;
};

}  // namespace lamina
