/// Helper threads in children: there are some if the parent has none, and the log tells if there are none.
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/arena.h"
#include "base/threads.h"
#include "base/topology.h"
#include "tests/api/small_models.h"
#include "tests/support/children.h"

namespace lamina {
namespace {

using namespace testing;
using namespace std::chrono_literals;

class Helpers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kNoThreadsInChildren.empty()) GTEST_SKIP() << kNoThreadsInChildren;
    if (read_topology().cpus.size() < 2) GTEST_SKIP() << "one processor: no thread helps";
  }
  std::string said_;
  const CompiledModel compiled_{model_of(sums()),
                                {.streams = 1, .log = [this](LogLevel, std::string_view line) {
                                   if (line.find("fork") != std::string_view::npos) said_ = line;
                                 }}};

  /// What the log says of the fork when the child starts an inference of a model that the parent compiled.
  std::string said_in_child() {
    auto request = compiled_.create_request();
    for (std::size_t i = 0; i < 2; ++i) request.set_input(i, rows(1, 1));
    request.start();
    request.wait();
    return said_;
  }
  /// True once a thread has helped here, which is soon.
  static bool has_helpers() {
    for (int i = 0; i < 1000 && helpers_made() == 0; ++i) on_threads(2, [] {});
    return helpers_made() > 0;
  }
};

TEST_F(Helpers, a_parent_without_them_has_children_with_them) {
  shutdown();
  ASSERT_EQ(helpers_made(), 0);
  EXPECT_EQ(in_child([&] {
              const auto said = said_in_child();
              return said.find("made again") != std::string::npos &&
                     said.find("shutdown()") == std::string::npos && !helpers_are_lost() && has_helpers();
            }),
            0);
}

TEST_F(Helpers, a_parent_with_them_has_children_without) {
  ASSERT_TRUE(has_helpers());
  EXPECT_EQ(in_child([&] {
              bool told = said_in_child().find("shutdown()") != std::string::npos;
              said_.clear();
              const CompiledModel own(
                  model_of(sums()), {.threads = 2, .streams = 1, .log = [&](LogLevel, std::string_view line) {
                                       if (line.find("fork") != std::string_view::npos) said_ = line;
                                     }});
              told = told && said_.find("shutdown()") != std::string::npos;
              shutdown();  // ends nothing of that
              return told && helpers_are_lost() && helpers_made() == 0;
            }),
            0);
  EXPECT_FALSE(helpers_are_lost());
}

}  // namespace
}  // namespace lamina
