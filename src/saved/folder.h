#pragma once
/// A folder of compiled models (CACHE_DIR): entries by key, "KEY.lamina".
#include <cstdint>
#include <functional>

#include "base/log.h"
#include "saved/container.h"
#include "saved/memo.h"
#include "saved/model.h"

namespace lamina {

/// An entry as a folder lists it.
struct CacheEntry {
  enum class State : std::uint8_t { good, other_version, damaged };
  std::string name;         ///< "0123456789abcdef0123456789abcdef.lamina"
  std::uint64_t bytes = 0;  ///< of the file
  std::int64_t used = 0;    ///< seconds since 1970 at which it was used last
  State state = State::good;
  std::string wrong;       ///< why it cannot be used, else empty
  std::string engine;      ///< what made it
  AboutModel model;        ///< model that it was made from
  std::string_view needs;  ///< the instruction set that it was made for
  bool magic = false;      ///< it begins as ours do
};

/// Files of a folder that are called as entries are, those used longest ago first. Throws Error(bad_file)
/// when it cannot be read.
std::vector<CacheEntry> cache_entries(const std::string& folder);
/// The entries with every byte checked: `state` and `wrong` have the result. Of an entry of another version
/// only the header is checked.
std::vector<CacheEntry> verified_entries(const std::string& folder);
struct Pruned {
  std::vector<CacheEntry> gone;
  std::string trouble;  ///< why one could not be removed, the first; else empty
};
/// Removes temporary files that are older than an hour, and entries (with `magic`), those used longest ago
/// first, until what is left takes `most` bytes at most. `replaced`: the name of an entry that is about to
/// be, which does not count. Returns the entries that it removed.
Pruned prune_entries(const std::string& folder, std::uint64_t most, const std::string& replaced = {});

/// What a compile does with the folder. It throws nothing about the folder: the first trouble is a warning,
/// and the model is compiled as if there were none. What is in it is used as it is, weights and tables that
/// kernels follow: a folder, or an entry, that another user could have written is not used.
class CacheFolder {
 public:
  /// Made where it is missing, for this user alone. `most`: bytes of all entries.
  CacheFolder(std::string path, std::uint64_t most, Logger log);

  HashMemo memo() const;
  /// The entry, opened by `use`. Returns why it is not: empty when it is. `use` throws for one that cannot be
  /// used, which the log says.
  std::string open(const Hash128& key, const std::function<void(std::shared_ptr<const CompiledFile>)>& use);
  /// Puts it there, where it fits.
  void store(const CompiledFileWriter& file, const FileHeader& header);

 private:
  /// True if the folder exists and belongs to this user; else a warning says why not.
  bool is_ours();
  std::string entry_path(const Hash128& key) const;
  void warn(const std::string& text);

  std::string path_;
  std::uint64_t most_;
  Logger log_;
  bool warned_ = false, ours_ = false;
};

}  // namespace lamina
