#pragma once
/// Messages of the library. It never prints: they go to callbacks.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/command_api.h"
#include "base/error.h"
#include "lamina/log.h"

namespace lamina {

using Level = LogLevel;
LAMINA_COMMAND_API std::string_view name_of(Level level);
LAMINA_COMMAND_API std::optional<Level> level_named(std::string_view name);

/// A destination of messages, handed to the modules that log; a copy has the same destination.
class Logger {
 public:
  Logger() = default;  ///< drops all, as with an empty callback
  explicit Logger(LogCallback callback, Level most = Level::warning);

  /// Whether messages of this level go anywhere; ask before making an expensive one.
  bool wants(Level level) const;
  void write(Level level, std::string_view line) const;

  template <class... A>
  void log(Level level, fmt::format_string<A...> text, A&&... args) const {
    if (wants(level)) write(level, fmt::format(text, std::forward<A>(args)...));
  }
  template <class... A>
  void warning(fmt::format_string<A...> text, A&&... args) const {
    log(Level::warning, text, std::forward<A>(args)...);
  }
  template <class... A>
  void info(fmt::format_string<A...> text, A&&... args) const {
    log(Level::info, text, std::forward<A>(args)...);
  }
  template <class... A>
  void debug(fmt::format_string<A...> text, A&&... args) const {
    log(Level::debug, text, std::forward<A>(args)...);
  }

 private:
  std::shared_ptr<const LogCallback> callback_;
  Level most_ = Level::warning;
};

}  // namespace lamina
