#include "base/work_bounds.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/arena.h"
#include "base/error.h"
#include "base/parallel.h"

namespace lamina::test {
namespace {

std::shared_ptr<MemoryAccount> account_of(WorkBounds& bounds, std::uint64_t bytes) {
  return bounds.memory = std::make_shared<MemoryAccount>(bytes);
}

template <class F>
std::string over_limit(const F& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::over_limit) << e.what();
    return e.what();
  }
  return "";
}

TEST(WorkBounds, tensors_take_and_give_back) {
  WorkBounds bounds;
  const auto account = account_of(bounds, 10000);
  const Within here(&bounds);
  {
    const Tensor a(ElementType::f32, {1000});
    EXPECT_EQ(account->taken(), 4000u);
    const Tensor b = a, c = a.reshaped({10, 100});
    EXPECT_EQ(account->taken(), 4000u);
    const Tensor d = a.clone();
    EXPECT_EQ(account->taken(), 8000u);
    EXPECT_EQ(over_limit([&] { Tensor(ElementType::f32, {501}); }),
              "a tensor f32[501]: 2004 bytes beside 8000 that are taken, LIMIT_MEMORY is 10000");
    EXPECT_EQ(account->taken(), 8000u);
  }
  EXPECT_EQ(account->taken(), 0u);
}

TEST(WorkBounds, a_tensor_may_outlive_the_work) {
  Tensor kept;
  WorkBounds bounds;
  const auto account = account_of(bounds, 1 << 30);
  {
    const Within here(&bounds);
    kept = Tensor(ElementType::u8, {8 << 20});  // on huge pages
  }
  const Tensor outside(ElementType::u8, {100});
  EXPECT_EQ(account->taken(), 8u << 20);
  kept = Tensor();
  EXPECT_EQ(account->taken(), 0u);
}

TEST(WorkBounds, what_was_taken_below_counts) {
  const auto below = std::make_shared<MemoryAccount>(1000);
  ASSERT_TRUE(below->take(900));
  MemoryAccount above(1000, below);
  EXPECT_FALSE(above.take(101));
  EXPECT_TRUE(above.take(100));
  EXPECT_EQ(above.left(), 0u);
  below->give_back(900);
  EXPECT_EQ(above.left(), 900u);
  EXPECT_FALSE(above.take(~std::size_t{0}));
  EXPECT_EQ(above.taken(), 100u);
}

TEST(WorkBounds, what_is_refused_takes_nothing_from_other_threads) {
  MemoryAccount account(1000);
  std::atomic<bool> done{false};
  std::thread greedy([&] {
    while (!done)
      if (account.take(1001)) account.give_back(1001);
  });
  int refused = 0;
  for (int i = 0; i < 300000; ++i) {
    if (account.take(1))
      account.give_back(1);
    else
      ++refused;
  }
  done = true;
  greedy.join();
  EXPECT_EQ(refused, 0);
}

TEST(WorkBounds, hold_in_all_threads_of_a_loop) {
  WorkBounds bounds;
  bounds.elements = 10;
  const Within here(&bounds);
  std::atomic<int> refused{0};
  on_threads(4, [&] {
    parallel_for(WorkPartition{64, 1, 4}, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) try {
          Tensor(ElementType::f32, {11});
        } catch (const Error&) {
          ++refused;
        }
    });
  });
  EXPECT_EQ(refused, 64);
}

TEST(WorkBounds, elements_beside_zeros) {
  WorkBounds bounds;
  bounds.elements = 100;
  const Within here(&bounds);
  EXPECT_EQ(over_limit([] {
              Tensor(ElementType::u8, {0, 101});
            }),
            "a tensor has shape [0,101] with 101 elements, LIMIT_ELEMENTS is 100");
  Tensor(ElementType::u8, {10, 10});
  {
    const Within none(nullptr);
    Tensor(ElementType::u8, {101});
  }
  EXPECT_NE(over_limit([] { Tensor(ElementType::u8, {101}); }), "");
}

TEST(WorkBounds, a_tensor_out_of_all_proportion_is_refused) {
  WorkBounds bounds;
  bounds.given = 1000;
  const Within here(&bounds);
  EXPECT_NE(over_limit([] { require_memory("x", std::size_t{2} << 30); }), "");
  require_memory("x", std::size_t{900} << 20);
  account_of(bounds, std::uint64_t{1} << 40);  // a number was given
  require_memory("x", 1 << 20);
}

TEST(WorkBounds, more_than_the_system_has_is_out_of_memory) {
  try {
    require_memory("x", std::size_t{1} << 50);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::out_of_memory);
  }
}

TEST(WorkBounds, what_grows_is_counted) {
  WorkBounds bounds;
  const auto account = account_of(bounds, 1 << 20);
  const Within here(&bounds);
  {
    GrowingMemory text("text");
    bounds.parsed = &text;
    for (int i = 0; i < 1000; ++i) note_parsed(500);
    EXPECT_GE(account->taken(), 500000u);
    EXPECT_LE(account->taken(), 1000000u);
    EXPECT_NE(over_limit([] { note_parsed(1 << 20); }).find("text"), std::string::npos);
  }
  bounds.parsed = nullptr;
  EXPECT_EQ(account->taken(), 0u);
}

}  // namespace
}  // namespace lamina::test
