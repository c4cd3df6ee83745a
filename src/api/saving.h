#pragma once
/// Compiled models into files and folders, and out of them.
#include "api/rewriting.h"
#include "base/fork_safe_mutex.h"
#include "saved/compiled.h"
#include "saved/folder.h"

namespace lamina {

/// The key of a cache entry: a hash of the model's content and of all that changes the compiled model.
/// Nothing when a file of the model was changed since it was opened.
std::optional<Hash128> key_of(const LoadedModel& model, const Options& options, const HashMemo& memo);

/// The contents of a compiled model's file.
struct Saving {
  std::shared_ptr<const LoadedModel> model;
  Options options;
  std::shared_ptr<const Rewriting> rewriting;
  std::shared_ptr<const SavedCompiled> before;  ///< the file that it came from, or null
  std::vector<StepTimeAlone> times = {};        ///< by which its streams were chosen, if they were
};

/// The program with the plans that it has made. Its weights must not be forgotten yet. `whole`: with the
/// model's own weights. Throws Error(bad_file).
CompiledFileWriter file_of(const Saving& saving, const Program& program, bool whole);
FileHeader header_of(const Hash128& key);
/// Nobody has written into a file of the model since it was opened.
bool as_it_was_read(const LoadedModel& model);

/// Throws Error(unsupported) when the process, or that machine, may not use what the file needs.
void require_isa(const CompiledFile& file, const Machine& machine);

/// Writes an entry again when a program has made more plans than it holds.
class EntryKeeper {
 public:
  EntryKeeper(Saving saving, const Hash128& key, std::shared_ptr<CacheFolder> folder, Logger log)
      : saving_(std::move(saving)),
        key_(key),
        folder_(std::move(folder)),
        log_(std::move(log)),
        most_(saving_.options.cached_plans) {}
  // Sets the saved model that this one comes from; must be called before the object is shared.
  void came_from(std::shared_ptr<const SavedCompiled> before) { saving_.before = std::move(before); }
  void streams_chosen_by(std::vector<StepTimeAlone> times) { saving_.times = std::move(times); }
  void keep(const std::shared_ptr<const Program>& program);
  /// Thread-safe.
  void store();

 private:
  void warn(const char* text) const;
  Saving saving_;
  Hash128 key_;
  std::shared_ptr<CacheFolder> folder_;
  Logger log_;
  ForkSafeMutex mutex_;  // the log is the user's
  std::weak_ptr<const Program> program_;
  std::size_t most_;        // plans that the entry may get
  std::size_t stored_ = 0;  // those that it has of the program
  bool there_ = false;
};

}  // namespace lamina
