#include "tests/support/soak.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace lamina::testing {

void soak_until_failure(const std::function<bool(std::mt19937&)>& step) {
  const char* minutes = std::getenv("LAMINA_SOAK_MINUTES");
  if (!minutes) GTEST_SKIP() << "LAMINA_SOAK_MINUTES is not set";
  const char* given = std::getenv("LAMINA_SEED");
  const auto seed =
      given ? static_cast<std::uint32_t>(std::strtoull(given, nullptr, 10)) : std::random_device()();
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::fprintf(stderr, "%s.%s: seed %u\n", test->test_suite_name(), test->name(), seed);
  std::mt19937 random(seed);
  const auto start = std::chrono::steady_clock::now();
  const std::chrono::duration<double, std::ratio<60>> most(std::strtod(minutes, nullptr));
  std::size_t rounds = 0, read = 0;
  for (; std::chrono::steady_clock::now() - start < most && !::testing::Test::HasFailure(); ++rounds)
    read += step(random);
  std::fprintf(stderr, "%s.%s: seed %u, %zu of %zu damaged files could be read%s\n", test->test_suite_name(),
               test->name(), seed, read, rounds,
               ::testing::Test::HasFailure() ? ", the last one failed" : "");
}

}  // namespace lamina::testing
