#include "base/log.h"

#include <array>
#include <mutex>

#include "base/text.h"

namespace lamina {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"error", "warning", "info", "debug"};

struct Default {
  std::mutex mutex;
  std::shared_ptr<const LogCallback> callback;
  Level most = Level::warning;
};

Default& process_default() {
  static Default* const all = new Default;  // never destroyed: threads may log until the very end
  return *all;
}

}  // namespace

std::string_view name_of(Level level) { return kLevels[static_cast<std::size_t>(level)]; }

std::optional<Level> level_named(std::string_view name) {
  for (std::size_t i = 0; i < kLevels.size(); ++i)
    if (kLevels[i] == name) return static_cast<Level>(i);
  return std::nullopt;
}

void set_default_log(LogCallback callback, Level most) {
  auto shared = callback ? std::make_shared<const LogCallback>(std::move(callback)) : nullptr;
  auto& all = process_default();
  std::lock_guard lock(all.mutex);
  all.callback.swap(shared);
  all.most = most;
}

Logger::Logger(LogCallback callback, Level most)
    : callback_(std::make_shared<const LogCallback>(callback ? std::move(callback)
                                                             : LogCallback([](Level, std::string_view) {}))),
      most_(most) {}

bool Logger::wants(Level level) const {
  if (callback_) return level <= most_;
  auto& all = process_default();
  std::lock_guard lock(all.mutex);
  return all.callback && level <= all.most;
}

void Logger::write(Level level, std::string_view text) const {
  const auto line = one_line(text);  // names in it come from files
  if (callback_) {
    if (level <= most_) (*callback_)(level, line);
    return;
  }
  std::shared_ptr<const LogCallback> callback;  // called without the lock: it may log or set itself
  {
    auto& all = process_default();
    std::lock_guard lock(all.mutex);
    if (level <= all.most) callback = all.callback;
  }
  if (callback) (*callback)(level, line);
}

}  // namespace lamina
