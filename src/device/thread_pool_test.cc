#include "device/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace oasr {
namespace {

TEST(ThreadPool, RunsEveryItemOnceOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 16}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const std::int64_t items : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(items));
      pool.parallel_for(items, [&](std::int64_t item, int thread) {
        EXPECT_TRUE(thread >= 0 && thread < threads);
        runs[static_cast<std::size_t>(item)].fetch_add(1);
      });
      for (const auto& count : runs) EXPECT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadPool, SurvivesManyShortLoopsWithSleepsBetween) {
  ThreadPool pool(4);
  std::int64_t total = 0;
  for (int loop = 0; loop < 3000; ++loop) {
    std::atomic<std::int64_t> sum{0};
    pool.parallel_for(5, [&](std::int64_t item, int) { sum.fetch_add(item); });
    total += sum.load();
    if (loop % 300 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));  // workers sleep
  }
  EXPECT_EQ(total, 3000 * 10);
}

TEST(ThreadPool, UsesItsWorkers) {
  ThreadPool pool(2);
  std::atomic<bool> other{false};
  pool.parallel_for(2, [&](std::int64_t, int thread) {
    if (thread == 1) other = true;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!other && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  });
  EXPECT_TRUE(other);
}

TEST(ThreadPool, RunsNestedLoopsInlineOnTheSameThread) {
  ThreadPool pool(3);
  std::atomic<int> inner_items{0};
  pool.parallel_for(8, [&](std::int64_t, int outer) {
    const auto id = std::this_thread::get_id();
    pool.parallel_for(4, [&](std::int64_t, int inner) {
      EXPECT_EQ(inner, outer);
      EXPECT_EQ(std::this_thread::get_id(), id);
      inner_items.fetch_add(1);
    });
  });
  EXPECT_EQ(inner_items.load(), 32);
}

TEST(ThreadPool, PassesTheFirstExceptionToTheCallerAndStaysUsable) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const auto fail = [](std::int64_t item, int) {
      if (item == 5) throw std::runtime_error("item 5");
    };
    EXPECT_THROW(pool.parallel_for(10, fail), std::runtime_error);
    std::atomic<int> runs{0};
    pool.parallel_for(10, [&](std::int64_t, int) { runs.fetch_add(1); });
    EXPECT_EQ(runs.load(), 10);
  }
}

TEST(ThreadPool, SleepsWhenThereIsNothingToDo) {
  ThreadPool pool(4);
  pool.parallel_for(100, [](std::int64_t, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double busy = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(busy, 0.02);
}

TEST(ThreadPool, ScratchIsAlignedKeepsItsSizeAndIsOwnedByOneThread) {
  ThreadPool pool(2);
  const auto a = pool.scratch(0, 1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % 64, 0u);
  EXPECT_EQ(pool.scratch(0, 10).data(), a.data());
  EXPECT_NE(pool.scratch(1, 1000).data(), a.data());
  EXPECT_GE(pool.scratch(0, 5000).size(), 5000u);
}

}  // namespace
}  // namespace oasr
