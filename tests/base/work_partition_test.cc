#include "base/work_partition.h"

#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <memory>
#include <thread>

#include "base/parallel.h"

namespace lamina {
namespace {

TEST(WorkPartition, EvenPartsCoverTheCount) {
  for (std::int64_t count = 1; count < 70; ++count)
    for (std::int64_t most = 0; most < 80; ++most) {
      const auto p = even_parts(count, most);
      EXPECT_LE(p.size, std::max<std::int64_t>(1, most));
      EXPECT_GE(p.size * p.number, count);
      EXPECT_LT(p.size * (p.number - 1), count);  // none is empty
    }
}

struct Case {
  std::int64_t units;
  double each;
  std::int64_t threads, slots, grain;
};

TEST(WorkPartition, Table) {
  const Case cases[] = {
      {1000, 0.004, 60, 1, 1000},  // 4 us wake nobody
      {1000, 0.004, 1, 1, 1000},   //
      {1000, 0.008, 60, 2, 500},   // 8 us: one more thread
      {1000, 0.04, 60, 10, 100},   // as many as there is work for
      {1000, 0.04, 8, 8, 100},     // or as there are
      {1000, 4, 2, 2, 31},         // many units: small pieces, for uneven cores
      {1000, 4, 64, 64, 1},        //
      {100000, 4, 8, 8, 781},      //
      {3, 100, 8, 3, 1},           // few units
      {9, 100, 8, 8, 1},           //
      {1, 1e9, 128, 1, 1},         //
      {0, 1, 8, 1, 1},             // nothing to do
      {1000, 0, 8, 1, 1000},       // no time at all
      {std::int64_t{1} << 40, 0x1p-20, 128, 128, 536870912},
  };
  for (const auto& c : cases) {
    const auto d = partition_work(c.units, c.each, c.threads);
    EXPECT_EQ(d.units, c.units);
    EXPECT_EQ(d.slots, c.slots) << c.units << " x " << c.each << " on " << c.threads;
    EXPECT_EQ(d.grain, c.grain) << c.units << " x " << c.each << " on " << c.threads;
  }
}

TEST(WorkPartition, GrowsWithWorkAndThreads) {
  for (const double each : {0.001, 0.3, 3.0, 70.0})
    for (std::int64_t threads = 1; threads <= 128; ++threads) {
      std::int64_t slots = 1, wanted = 1;
      for (std::int64_t units = 1; units < 20000; units = units * 5 / 4 + 1) {
        const auto d = partition_work(units, each, threads);
        EXPECT_GE(d.slots, slots);
        EXPECT_GE(d.slots, partition_work(units, each, std::max<std::int64_t>(1, threads - 1)).slots);
        EXPECT_LE(d.slots, threads);
        // Nobody is woken for less than it is worth, the last one perhaps excepted.
        EXPECT_LE(static_cast<double>(d.slots - 1) * kWorthAThread,
                  2 * static_cast<double>(units) * std::max(each, kWorthAThread / 2));
        if (d.slots > 1) {
          EXPECT_TRUE(d.grain == 1 || static_cast<double>(d.grain + 1) * each > kWorthAThread);
        }
        slots = d.slots;
        const auto total = static_cast<double>(units) * each;
        const auto cut = units_wanted(total, threads);
        EXPECT_GE(cut, wanted);
        EXPECT_TRUE(cut == 1 || total / static_cast<double>(cut) >= kWorthAThread);
        wanted = cut;
      }
      if (threads == 1) {
        EXPECT_EQ(wanted, 1);
      } else if (each == 70.0) {
        EXPECT_GE(wanted, 2 * threads);  // nothing is cut for a constant number of tasks
      }
    }
}

/// Runs a loop, counts how often each unit was done and whether two pieces shared a slot at a time.
void run_loop(const WorkPartition& d) {
  const auto done = std::make_unique<std::atomic<int>[]>(static_cast<std::size_t>(d.units + 1));
  const auto busy = std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(d.slots));
  std::atomic<bool> good = true;
  parallel_for(d, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
    if (begin >= end || slot < 0 || slot >= d.slots) {
      good = false;
      return;
    }
    auto& mine = busy[static_cast<std::size_t>(slot)];
    if (mine.exchange(true)) good = false;
    for (auto i = begin; i < end; ++i) ++done[static_cast<std::size_t>(i)];
    mine = false;
  });
  EXPECT_TRUE(good);
  for (std::int64_t i = 0; i < d.units; ++i) ASSERT_EQ(done[static_cast<std::size_t>(i)], 1) << i;
}

TEST(WorkPartition, EachUnitIsDoneOnceWithASlotOfItsOwn) {
  for (const int threads : {1, 2, 3, allowed_threads(5)}) {
    tbb::task_arena arena(threads);
    arena.execute([] {
      for (const std::int64_t planned : {1, 2, 5, 128})  // for more or fewer threads than there are
        for (const std::int64_t units : {0, 1, 2, 3, 7, 64, 1000, 4097})
          for (const double each : {0.001, 0.1, 2.0, 50.0}) run_loop(partition_work(units, each, planned));
    });
  }
}

TEST(WorkPartition, ThreadsThatAreDoneTakeFromOthers) {
  tbb::task_arena two(2);
  two.execute([] {
    std::atomic<std::int64_t> by_caller = 0, by_others = 0, first_slot = -1;
    const auto caller = std::this_thread::get_id();
    parallel_for(partition_work(64, 50, 2), [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
      const bool here = std::this_thread::get_id() == caller;
      if (here && begin == 0) first_slot = slot;
      (here ? by_caller : by_others) += end - begin;
      // The other thread does not get beyond its first piece before the caller has done more than its share.
      const auto late = std::chrono::steady_clock::now() + std::chrono::minutes(1);
      while (!here && by_caller <= 40 && std::chrono::steady_clock::now() < late)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    EXPECT_EQ(by_caller + by_others, 64);
    EXPECT_GT(by_caller, 40);
    EXPECT_TRUE(first_slot == 1 || first_slot == -1);  // the last one, unless another took the first piece
  });
}

TEST(WorkPartition, LoopsInLoopsKeepTheirSlots) {
  tbb::task_arena four(4);
  four.execute([] {
    std::atomic<std::int64_t> sum = 0;
    std::atomic<int> in_slot[4] = {};
    std::atomic<bool> good = true;
    parallel_for(partition_work(40, 50, 4), [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
      if (in_slot[slot]++ != 0) good = false;
      for (auto i = begin; i < end; ++i)
        parallel_for(partition_work(100, 1, 4), [&](std::int64_t b, std::int64_t e) { sum += e - b; });
      --in_slot[slot];
    });
    EXPECT_TRUE(good);
    EXPECT_EQ(sum, 4000);
  });
}

}  // namespace
}  // namespace lamina
