#include "saved/folder.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/cpu.h"
#include "base/directory.h"
#include "base/error.h"
#include "saved/engine.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".lamina", kMemo = ".lamina-hashes", kTemporary = ".tmp";
constexpr std::size_t kDigits = 32;

/// KEY.lamina, or a name that begins so.
bool begins_as_entry(std::string_view name) {
  return name.size() >= kDigits + kEnding.size() && name.substr(kDigits, kEnding.size()) == kEnding &&
         name.substr(0, kDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_entry(std::string_view name) {
  return begins_as_entry(name) && name.size() == kDigits + kEnding.size();
}

bool is_temporary(std::string_view name) {
  const bool ours = begins_as_entry(name) || name.starts_with(kMemo);
  return ours && name.ends_with(kTemporary);
}

/// Files of the folder; throws for one that cannot be read.
std::vector<fs::directory_entry> files_of(const std::string& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> out;
  for (const auto& name : names_in(folder, error)) {
    std::error_code gone;
    fs::directory_entry file(fs::path(folder) / name, gone);
    if (file.is_regular_file(gone)) out.push_back(std::move(file));
  }
  if (error) fail(ErrorCode::bad_file, "{}: cannot be read as a cache: {}", folder, error.message());
  return out;
}

std::int64_t age_seconds(const fs::directory_entry& file) {
  std::error_code error;
  const auto time = file.last_write_time(error);
  return error ? 0
               : std::chrono::duration_cast<std::chrono::seconds>(fs::file_time_type::clock::now() - time)
                     .count();
}

/// A file of the folder, with the time of its last use.
struct Found {
  CacheEntry entry;
  fs::file_time_type time;
};

void describe(CacheEntry& entry, const std::string& path, bool whole) {
  const auto mapped = MappedFile::open(path);
  entry.bytes = mapped->size();
  entry.magic = CompiledFile::is_one(mapped->bytes());
  const CompiledFile file(mapped);
  entry.engine = file.header().engine;
  entry.needs = name_of(file.header().needs);
  entry.model = about_model(file);
  if (whole) file.check();
  file.require_this_engine();
}

/// Nothing where it is none, or is gone meanwhile.
std::optional<Found> entry_of(const fs::directory_entry& file, bool whole) {
  Found out;
  auto& entry = out.entry;
  entry.name = file.path().filename().string();
  if (!is_entry(entry.name)) return std::nullopt;
  std::error_code error;
  out.time = file.last_write_time(error);
  entry.used = std::chrono::duration_cast<std::chrono::seconds>(
                   fs::file_time_type::clock::to_sys(out.time).time_since_epoch())
                   .count();
  try {
    describe(entry, file.path().string(), whole);
  } catch (const Error& e) {
    if (ends_the_work(e.code())) throw;
    if (!fs::exists(file.path(), error) && !error) return std::nullopt;
    entry.wrong = e.what();
    entry.state =
        e.code() == ErrorCode::unsupported ? CacheEntry::State::other_version : CacheEntry::State::damaged;
  }
  return out;
}

std::vector<CacheEntry> entries_of(const std::string& folder, bool whole) {
  std::vector<Found> found;
  for (const auto& file : files_of(folder))
    if (auto entry = entry_of(file, whole)) found.push_back(std::move(*entry));
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tie(a.time, a.entry.name) < std::tie(b.time, b.entry.name);
  });
  std::vector<CacheEntry> out;
  for (auto& f : found) out.push_back(std::move(f.entry));
  return out;
}

}  // namespace

std::vector<CacheEntry> cache_entries(const std::string& folder) { return entries_of(folder, false); }

std::vector<CacheEntry> verified_entries(const std::string& folder) { return entries_of(folder, true); }

Pruned prune_entries(const std::string& folder, std::uint64_t most, const std::string& replaced) {
  constexpr std::int64_t kHour = 3600;
  std::error_code error;
  for (const auto& file : files_of(folder))
    if (is_temporary(file.path().filename().string()) && age_seconds(file) > kHour)
      fs::remove(file.path(), error);
  auto entries = cache_entries(folder);
  std::erase_if(entries, [&](const auto& e) { return !e.magic || e.name == replaced; });
  std::uint64_t left = 0;
  for (const auto& e : entries) left += e.bytes;
  Pruned out;
  for (const auto& e : entries) {
    if (left <= most) break;
    const auto path = fs::path(folder) / e.name;
    const bool removed = fs::remove(path, error);
    if (error && out.trouble.empty())
      out.trouble = fmt::format("{}: cannot be removed: {}", path.string(), error.message());
    if (error) continue;
    left -= e.bytes;
    if (removed) out.gone.push_back(e);  // else another process has
  }
  return out;
}

CacheFolder::CacheFolder(std::string path, std::uint64_t most, Logger log)
    : path_(std::move(path)), most_(most), log_(std::move(log)) {
  ours_ = is_ours();
}

bool CacheFolder::is_ours() {
  make_private_folder(path_);
  std::error_code error;
  if (!fs::is_directory(path_, error)) {
    warn(fmt::format("{}: is no folder and none can be made there", path_));
    return false;
  }
  const auto why = written_by_others(path_);
  if (!why.empty()) warn(fmt::format("{}: {}: not used, wanted a folder of this user alone", path_, why));
  return why.empty();
}

void CacheFolder::warn(const std::string& text) {
  if (!warned_) log_.warning("cache: {}", text);
  warned_ = true;
}

HashMemo CacheFolder::memo() const {
  return HashMemo(ours_ ? (fs::path(path_) / kMemo).string() : std::string());
}

std::string CacheFolder::entry_path(const Hash128& key) const {
  return (fs::path(path_) / (to_string(key) + std::string(kEnding))).string();
}

std::string CacheFolder::open(const Hash128& key,
                              const std::function<void(std::shared_ptr<const CompiledFile>)>& use) {
  if (!ours_) return fmt::format("{} is not used", path_);
  const auto path = entry_path(key);
  std::error_code error;
  if (!fs::exists(path, error)) return fmt::format("there is no entry {}", to_string(key));
  try {
    const auto file = std::make_shared<const CompiledFile>(MappedFile::open_own(path));
    file->require_this_engine();
    if (file->header().key != key) fail(ErrorCode::bad_file, "{}: is of another model", path);
    use(file);
    fs::last_write_time(path, fs::file_time_type::clock::now(), error);
    return "";
  } catch (const Error& e) {
    if (ends_the_work(e.code())) throw;
    const auto why = fmt::format("rebuilt: {}", e.what());
    warn(why);
    return why;
  }
}

void CacheFolder::store(const CompiledFileWriter& file, const FileHeader& header) {
  if (file.size() > most_) {
    log_.info("cache: {} bytes are more than CACHE_SIZE allows: not kept", file.size());
    return;
  }
  try {
    if (!(ours_ = is_ours())) return;
    const auto path = entry_path(header.key);
    prune_entries(path_, most_ - file.size(), fs::path(path).filename().string());
    file.write(path, header, AtomicFile::Path::ours);
  } catch (const Error& e) {
    warn(e.what());
  }
}

}  // namespace lamina
