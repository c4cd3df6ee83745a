#include "base/cancellation.h"

#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/parallel.h"

namespace lamina {
namespace {

struct Flag final : StopSignal {
  std::atomic<bool> on{false};
  bool stop_requested() const noexcept override { return on; }
};

std::string stopped_by(const StopRules& rules, const std::function<void()>& body) {
  try {
    run_stoppable(rules, body);
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

TEST(StopScope, who_asks_for_it) {
  Flag flag;
  int turns = 0;
  const StopRules rules{.signal = &flag, .what = "counting"};
  EXPECT_EQ(stopped_by(rules,
                       [&] {
                         for (;;) {
                           stop_point();
                           quick_stop_point();
                           if (++turns == 3) flag.on = true;
                         }
                       }),
            "counting was canceled");
  EXPECT_EQ(turns, 3);
  stop_point();  // outside nothing is stopped
}

TEST(StopScope, a_deadline_names_its_key) {
  const StopRules rules{.what = "counting", .seconds = 0.01, .seconds_key = "SOME_SECONDS"};
  EXPECT_EQ(stopped_by(rules,
                       [] {
                         for (;;) stop_point();
                       }),
            "counting took more than 0.01 s (SOME_SECONDS)");
}

TEST(StopScope, a_place_is_told) {
  const StopRules rules{.what = "counting", .seconds = 1e-9, .seconds_key = "SOME_SECONDS"};
  EXPECT_EQ(stopped_by(rules,
                       [] {
                         try {
                           for (;;) stop_point();
                         } catch (Stopped& stopped) {
                           stopped.at("layer \"x\"");
                           throw;
                         }
                       }),
            "layer \"x\": counting took more than 1e-09 s (SOME_SECONDS)");
}

/// Inner work ends with the outer one, whose error it is.
TEST(StopScope, scopes_nest) {
  Flag outer, inner;
  bool came = false;
  const auto work = [&] {
    EXPECT_EQ(stopped_by({.signal = &inner, .what = "the inner one"},
                         [&] {
                           inner.on = true;
                           stop_point();
                         }),
              "the inner one was canceled");
    stop_point();
    came = true;
    outer.on = true;
    run_stoppable({.what = "the second inner one"}, [] { stop_point(); });
  };
  EXPECT_EQ(stopped_by({.signal = &outer, .what = "the outer one"}, work), "the outer one was canceled");
  EXPECT_TRUE(came);
}

TEST(StopScope, limits_of_loops_are_the_least) {
  EXPECT_EQ(StopScope::loop_iterations(), std::numeric_limits<std::int64_t>::max());
  const StopScope outer({.loop_iterations = 5});
  const StopScope inner({.loop_iterations = 7});
  EXPECT_EQ(StopScope::loop_iterations(), 5);
}

/// The user's code is its own.
TEST(StopScope, callbacks_are_outside) {
  Flag flag;
  flag.on = true;
  const StopScope scope({.signal = &flag});
  {
    const InUsersCallback here;
    stop_point();
  }
  EXPECT_THROW(stop_point(), Stopped);
}

class Loops : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, Loops, ::testing::Values(1, 2, 4));

/// Pieces that are not begun are not done.
TEST_P(Loops, end_between_pieces) {
  tbb::task_arena arena(GetParam());
  arena.execute([] {
    Flag flag;
    std::atomic<std::int64_t> done = 0;
    const auto partition = partition_work(1 << 20, 5000, threads_here());
    EXPECT_EQ(stopped_by({.signal = &flag, .what = "the loop"},
                         [&] {
                           parallel_for(partition, [&](std::int64_t begin, std::int64_t end) {
                             done += end - begin;
                             if (done >= 100) flag.on = true;
                           });
                         }),
              "the loop was canceled");
    EXPECT_LT(done, 2000);
    done = 0;  // and the next one is whole
    parallel_for(partition, [&](std::int64_t begin, std::int64_t end) { done += end - begin; });
    EXPECT_EQ(done, 1 << 20);
  });
}

/// Helpers work for the scope of who began the loop.
TEST_P(Loops, stop_points_in_the_body) {
  tbb::task_arena arena(GetParam());
  arena.execute([] {
    Flag flag;
    EXPECT_EQ(stopped_by({.signal = &flag, .what = "the loop"},
                         [&] {
                           parallel_for(8, 1, [&](std::int64_t, std::int64_t) {
                             EXPECT_NE(StopScope::here(), nullptr);
                             flag.on = true;
                             for (;;) stop_point();
                           });
                         }),
              "the loop was canceled");
    EXPECT_EQ(StopScope::here(), nullptr);
  });
}

/// In a quiescent state helpers leave the loop and the caller pauses. Afterwards the loop continues: each
/// unit is done once.
TEST_P(Loops, go_on_after_a_quiescent_state) {
  std::atomic<bool> over = false;
  std::thread stops([&] {
    while (!over) {
      Quiescence::begin();
      Quiescence::end();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  tbb::task_arena arena(GetParam());
  arena.execute([] {
    for (int round = 0; round < 20; ++round) {
      const Uninterrupted here;
      std::vector<std::atomic<int>> done(4000);
      parallel_for(partition_work(4000, 10, threads_here()), [&](std::int64_t begin, std::int64_t end) {
        for (auto i = begin; i < end; ++i) ++done[static_cast<std::size_t>(i)];
      });
      EXPECT_TRUE(std::all_of(done.begin(), done.end(), [](const auto& d) { return d == 1; }));
      stop_point();
    }
  });
  over = true;
  stops.join();
}

/// What is counted does not depend on how a loop was cut.
TEST_P(Loops, count_units) {
  tbb::task_arena arena(GetParam());
  arena.execute([] {
    std::atomic<std::int64_t> units = 1'000'000;
    const StopScope scope({.units = &units});
    parallel_for(1000, 1, [&](std::int64_t begin, std::int64_t end) {
      StopPoints points(100);
      for (auto i = begin; i < end; ++i) points(7);
    });
    EXPECT_EQ(units, 1'000'000 - 7000);
    units = 10;
    const auto count = [] {
      StopPoints points(1);
      for (;;) points();
    };
    EXPECT_THROW(count(), Stopped);
  });
}

TEST(StopPoints, sorting) {
  Flag flag;
  std::vector<int> numbers(100'000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i * 7919 % numbers.size());
  StopPoints points(16);
  int compared = 0;
  const auto less = [&](int a, int b) {
    if (++compared == 1000) flag.on = true;
    return a < b;
  };
  EXPECT_EQ(stopped_by({.signal = &flag, .what = "sorting"},
                       [&] { std::sort(numbers.begin(), numbers.end(), comparing(points, less)); }),
            "sorting was canceled");
  EXPECT_LT(compared, 1100);
}

}  // namespace
}  // namespace lamina
