#include "base/threads/fair_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

namespace valora {
namespace {

// A pool with one thread, busy until open() is called, so that jobs queue up.
class OneThread : public ::testing::Test {
 protected:
  OneThread() {
    pool_.emplace(1);
    std::promise<void> begun;
    pool_->post("gate", 0, [this, &begun] {
      begun.set_value();
      gate_.get_future().wait();
    });
    begun.get_future().wait();
  }
  void add(const std::string& client, uint64_t id) {
    pool_->post(client, id, [this, client, id] { order_ += client + std::to_string(id) + " "; });
  }
  std::string order() {
    gate_.set_value();
    pool_.reset();
    return order_;
  }

  std::promise<void> gate_;
  std::string order_;
  std::optional<FairPool> pool_;
};

TEST_F(OneThread, ClientsTakeTurns) {
  for (uint64_t id = 1; id <= 4; ++id) add("a", id);
  add("b", 1);
  add("c", 1);
  add("b", 2);
  EXPECT_EQ(order(), "a1 b1 c1 a2 b2 a3 a4 ");
}

TEST_F(OneThread, WithdrawnJobDoesNotRun) {
  for (uint64_t id = 1; id <= 3; ++id) add("a", id);
  add("b", 1);
  FairPool::Job job = pool_->withdraw("a", 2);
  ASSERT_TRUE(job);
  EXPECT_FALSE(pool_->withdraw("a", 2)) << "it is taken";
  EXPECT_FALSE(pool_->withdraw("c", 1));
  EXPECT_TRUE(pool_->withdraw("b", 1)) << "the client's last one";
  EXPECT_EQ(order(), "a1 a3 ");
  job();
  EXPECT_EQ(order_, "a1 a3 a2 ");
}

TEST(FairPool, ClientStaysWithinItsThreadLimit) {
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  std::atomic<int> begun = 0;
  FairPool pool(3, 2);
  for (uint64_t id = 0; id < 4; ++id)
    pool.post("greedy", id, [&begun, open] {
      ++begun;
      open.wait();
    });
  while (begun < 2) std::this_thread::yield();
  std::promise<void> other;
  pool.post("other", 0, [&] { other.set_value(); });
  other.get_future().wait();  // would block forever if the greedy client had all three
  EXPECT_EQ(begun, 2);
  gate.set_value();
}

// Mimics a thread of one pool that posts a request's last step to another pool. TSan detects a
// violation.
TEST(FairPool, JobMayLetAnotherThreadDestroyPool) {
  for (int i = 0; i < 200; ++i) {
    auto pool = std::make_unique<FairPool>(1);
    std::promise<void> ran;
    std::thread other([&] { pool->post("a", 0, [&] { ran.set_value(); }); });
    ran.get_future().wait();
    pool.reset();
    other.join();
  }
}

TEST(FairPool, DestructorRunsEachConcurrentJobOnce) {
  std::atomic<int> runs = 0;
  {
    FairPool pool(3, 2);
    std::vector<std::thread> clients;
    for (int c = 0; c < 4; ++c)
      clients.emplace_back([&, c] {
        for (uint64_t i = 0; i < 250; ++i) pool.post(std::to_string(c % 2), i, [&] { ++runs; });
      });
    for (auto& client : clients) client.join();
  }
  EXPECT_EQ(runs, 1000);
}

}  // namespace
}  // namespace valora
