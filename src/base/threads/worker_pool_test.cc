#include "base/threads/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

namespace valora {
namespace {

TEST(WorkerPool, DestructorRunsPostedJobsInOrder) {
  std::vector<int> order;
  std::promise<void> go;
  {
    WorkerPool pool(1);
    pool.post([&] { go.get_future().wait(); });
    for (int i = 0; i < 100; ++i) pool.post([&order, i] { order.push_back(i); });
    go.set_value();
  }
  ASSERT_EQ(order.size(), 100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(WorkerPool, JobsFromManyThreadsRunOnceEach) {
  std::atomic<int> runs = 0;
  {
    WorkerPool pool(3);
    std::vector<std::thread> clients;
    for (int c = 0; c < 4; ++c)
      clients.emplace_back([&] {
        for (int i = 0; i < 250; ++i) pool.post([&] { ++runs; });
      });
    for (auto& client : clients) client.join();
  }
  EXPECT_EQ(runs, 1000);
}

TEST(WorkerPool, RunsJobsConcurrently) {
  std::promise<void> first, second;
  WorkerPool pool(2);
  // Each job waits for the other: a single thread would deadlock.
  pool.post([&] { first.set_value(), second.get_future().wait(); });
  std::promise<void> done;
  pool.post([&] { second.set_value(), first.get_future().wait(), done.set_value(); });
  done.get_future().wait();
}

TEST(WorkerPool, DestroysJobAfterRun) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  WorkerPool pool(1);
  pool.post([held = std::move(held)] {});
  std::promise<bool> gone;
  pool.post([&] { gone.set_value(watch.expired()); });
  EXPECT_TRUE(gone.get_future().get());
}

}  // namespace
}  // namespace valora
