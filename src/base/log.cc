#include "base/log.h"

#include <array>

#include "base/quiescence.h"
#include "base/text.h"

namespace lamina {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"error", "warning", "info", "debug"};

}  // namespace

std::string_view name_of(Level level) { return kLevels[static_cast<std::size_t>(level)]; }

std::optional<Level> level_named(std::string_view name) {
  for (std::size_t i = 0; i < kLevels.size(); ++i)
    if (kLevels[i] == name) return static_cast<Level>(i);
  return std::nullopt;
}

Logger::Logger(LogCallback callback, Level most) : most_(most) {
  if (callback) callback_ = std::make_shared<const LogCallback>(std::move(callback));
}

bool Logger::wants(Level level) const { return callback_ && level <= most_; }

void Logger::write(Level level, std::string_view text) const {
  if (!wants(level)) return;
  const InUsersCallback here;
  (*callback_)(level, one_line(text));  // names in it come from files
}

}  // namespace lamina
