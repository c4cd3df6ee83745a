#include "base/memory_left.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/control_groups.h"
#include "base/no_destructor.h"
#include "base/system_file.h"

namespace lamina {
namespace {

constexpr std::uint64_t kUnknown = std::uint64_t{1} << 62;

std::optional<std::uint64_t> number_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  const auto error = std::from_chars(text.data(), text.data() + text.size(), value).ec;
  if (error != std::errc()) return std::nullopt;  // "max"
  return value;
}

std::optional<std::uint64_t> number_of(const std::string& path) {
  const auto line = system_line(path);
  return line ? number_in(*line) : std::nullopt;
}

/// The sum of what stands behind these words, each at the beginning of a line; 0 for what is missing.
std::uint64_t sum_of(const std::string& path, std::initializer_list<std::string_view> words) {
  std::uint64_t sum = 0;
  for (const auto& line : system_lines(path))
    for (const auto word : words)
      if (line.starts_with(word)) sum += number_in(std::string_view(line).substr(word.size())).value_or(0);
  return sum;
}

/// How the files of a group are called.
struct Names {
  const char *most, *used;
  std::initializer_list<std::string_view> cache;  ///< lines of memory.stat
};

void narrow(MemoryLeft& left, std::uint64_t bytes, const std::string& of) {
  if (bytes < left.bytes) left = {bytes, of};
}

MemoryLeft tightest(const std::string& root_folder, bool now) {
  const auto root = root_folder.ends_with('/') ? root_folder : root_folder + "/";
  MemoryLeft left{kUnknown, "this machine"};
  const auto kilobytes = sum_of(root + "proc/meminfo", {now ? "MemAvailable:" : "MemTotal:"});
  if (kilobytes != 0) narrow(left, kilobytes * 1024, "this machine");
  const auto look = [&](const std::string& folder, const Names& names) {
    const auto most = number_of(folder + "/" + names.most);
    if (!most || *most >= kUnknown) return;
    std::uint64_t used = 0;
    if (now) {
      used = number_of(folder + "/" + names.used).value_or(0);
      used -= std::min(used, sum_of(folder + "/memory.stat", names.cache));
    }
    narrow(left, *most - std::min(*most, used), "the control group " + folder);
  };
  const ControlGroups groups(root);
  groups.unified([&](const std::string& folder) {
    look(folder, {"memory.max", "memory.current", {"inactive_file ", "active_file "}});
  });
  groups.controller("memory", {"memory"}, [&](const std::string& folder) {
    look(folder,
         {"memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file ", "total_active_file "}});
  });
  return left;
}

}  // namespace

MemoryLeft memory_left(const std::string& root) { return tightest(root, true); }
MemoryLeft memory_in_all(const std::string& root) { return tightest(root, false); }

bool has_memory(std::uint64_t bytes) {
  static const ProcessLifetime all([] { return memory_in_all().bytes; });
  return bytes < *all;
}

}  // namespace lamina
