/// A fork within an inference, in its progress callback: the child goes on with it, on its own stream.
#include <unistd.h>

#include <functional>
#include <thread>
#include <utility>

#include "tests/api/small_models.h"
#include "tests/support/children.h"

namespace lamina {
namespace {

using namespace testing;
using namespace std::chrono_literals;

class ForksWithin : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kNoThreadsInChildren.empty()) GTEST_SKIP() << kNoThreadsInChildren;
  }

  /// Forks once, when a plan is made, and calls `in_child_` in the child.
  ProgressCallback progress() {
    return [this](std::string_view, double) {
      if (!std::exchange(armed_, false)) return;
      child_ = fork();
      if (child_ == 0) in_child_();
    };
  }
  /// In the child: the end of it. In the parent: the child has ended well.
  void end(bool good) {
    if (child_ == 0) _exit(good ? 0 : 1);
    EXPECT_EQ(status_of(child_), 0);
  }

  static Request ready(const CompiledModel& compiled, std::int64_t batch, float value) {
    auto request = compiled.create_request();
    request.set_input(0, rows(batch, value));
    request.set_input(1, rows(batch, value));
    return request;
  }
  static bool gives(const Request& request, std::int64_t batch, float value) {
    return request.output(1).same_as(rows(batch, value));
  }

  bool armed_ = false;
  pid_t child_ = -1;
  std::function<void()> in_child_;
};

TEST_F(ForksWithin, a_run_keeps_its_stream) {
  const CompiledModel compiled(model_of(sums()), {.threads = 1, .streams = 1, .progress = progress()});
  ready(compiled, 1, 1).run();
  std::string said;
  in_child_ = [&] {
    std::thread([&] {
      auto other = ready(compiled, 1, 2);
      said = error_of([&] { other.run_for(10ms); }, ErrorCode::over_limit);
    }).join();
  };
  auto request = ready(compiled, 2, 3);
  armed_ = true;
  request.run();
  bool good = gives(request, 2, 6);
  if (child_ == 0) {
    good = good && said.find("no stream was free") != std::string::npos;
    std::thread([&] {  // now it is free
      auto other = ready(compiled, 1, 2);
      other.run();
      good = good && gives(other, 1, 4);
    })
        .join();
  }
  ASSERT_FALSE(armed_);
  end(good);
}

TEST_F(ForksWithin, a_run_inside_takes_a_free_stream) {
  const CompiledModel compiled(model_of(sums()), {.threads = 2, .streams = 2, .progress = progress()});
  ready(compiled, 1, 1).run();
  bool good = false;
  in_child_ = [&] {
    auto other = ready(compiled, 1, 2);
    try {
      other.run();
      good = gives(other, 1, 4);
    } catch (const Error& e) {
      std::fprintf(stderr, "in the child: %s\n", e.what());
    }
  };
  auto request = ready(compiled, 2, 3);
  armed_ = true;
  request.run();
  ASSERT_FALSE(armed_);
  end(good && gives(request, 2, 6));
}

/// What the stream's thread, which forks, infers is not canceled, and keeps the turn of exclusive models.
TEST_F(ForksWithin, what_was_started_goes_on) {
  const CompiledModel compiled(model_of(sums()), {.streams = 1, .exclusive = true, .progress = progress()});
  const CompiledModel another(model_of(sums()), {.streams = 1, .exclusive = true});
  ready(another, 1, 1).run();
  auto request = ready(compiled, 2, 3), other = ready(another, 1, 2);
  bool good = false;
  in_child_ = [&] {
    good = request.status() == RequestStatus::running;
    const auto said = error_of([&] { other.start(), other.wait(); }, ErrorCode::busy);
    good = good && said.find("exclusive") != std::string::npos;
  };
  request.set_callback([&](const std::exception_ptr& error) {
    if (child_ == 0) end(good && error == nullptr && gives(request, 2, 6));
  });
  armed_ = true;
  request.start();
  request.wait();
  ASSERT_FALSE(armed_);
  EXPECT_TRUE(gives(request, 2, 6));
  end(true);
}

}  // namespace
}  // namespace lamina
