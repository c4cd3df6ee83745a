/// Messages.
#include <gtest/gtest.h>

#include "base/log.h"

namespace lamina {
namespace {

TEST(Log, LevelsHaveNames) {
  for (const auto level : {Level::error, Level::warning, Level::info, Level::debug})
    EXPECT_EQ(level_named(name_of(level)), level);
  EXPECT_FALSE(level_named("loud").has_value());
}

TEST(Log, OwnCallback) {
  std::string seen;
  const Logger log(
      [&](Level level, std::string_view text) { seen += fmt::format("{}: {}\n", name_of(level), text); },
      Level::info);
  log.warning("{} and {}", 1, 2);
  log.info("three");
  log.debug("not this");
  const Logger copy = log;
  copy.log(Level::error, "four");
  EXPECT_EQ(seen, "warning: 1 and 2\ninfo: three\nerror: four\n");
  EXPECT_TRUE(log.wants(Level::info));
  EXPECT_FALSE(log.wants(Level::debug));
}

TEST(Log, WithoutCallbackNobodyHears) {
  for (const auto& log : {Logger{}, Logger{LogCallback{}}}) {
    EXPECT_FALSE(log.wants(Level::error));
    log.warning("lost");
  }
}

}  // namespace
}  // namespace lamina
