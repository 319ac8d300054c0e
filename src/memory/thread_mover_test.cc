#include "memory/thread_mover.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

namespace valora::memory {
namespace {

Move move(uint64_t id, Urgency urgency = Urgency::kBackground, int64_t bytes = 1) {
  return {.id = id, .urgency = urgency, .blocks = {static_cast<BlockId>(id)}, .bytes = bytes};
}

std::vector<MoveResult> wait_for(ThreadMover& mover, size_t count) {
  std::vector<MoveResult> results;
  while (results.size() < count) {
    for (MoveResult& result : mover.poll()) results.push_back(std::move(result));
    std::this_thread::yield();
  }
  return results;
}

TEST(ThreadMover, CopiesReportsAndWakes) {
  std::atomic<int> wakes = 0;
  ThreadMover mover(
      {2},
      [](const Move& m) -> Status {
        if (m.id == 2) return internal("the disk is gone");
        if (m.id == 3) throw std::runtime_error("no memory");
        return {};
      },
      [&] { ++wakes; }, real_clock());
  for (uint64_t id = 1; id <= 3; ++id) mover.start(move(id));
  const auto results = wait_for(mover, 3);
  for (const MoveResult& result : results) EXPECT_EQ(result.status.ok(), result.id == 1);
  while (wakes < 3) std::this_thread::yield();
}

// A mover with one thread, held in its first move.
class HeldMover {
 public:
  HeldMover()
      : mover_(
            {1},
            [this](const Move& m) {
              if (m.id == 1) {
                begun_.set_value();
                gate_.get_future().wait();
              }
              return Status();
            },
            {}, real_clock()) {
    mover_.start(move(1));
    begun_.get_future().wait();
  }
  ThreadMover& operator*() { return mover_; }
  ThreadMover* operator->() { return &mover_; }
  void open() { gate_.set_value(); }

 private:
  std::promise<void> begun_, gate_;
  ThreadMover mover_;
};

TEST(ThreadMover, RunsMostUrgentThenOldest) {
  HeldMover mover;
  mover->start(move(2));
  mover->start(move(3, Urgency::kKvOfRequest));
  mover->start(move(4, Urgency::kAdapterOfRequest));
  mover->start(move(5));
  mover->raise_priority(5, Urgency::kAdapterOfRequest);
  mover->raise_priority(4, Urgency::kBackground);  // never lowers the priority
  mover.open();
  std::vector<uint64_t> order;
  for (const MoveResult& result : wait_for(*mover, 5)) order.push_back(result.id);
  EXPECT_EQ(order, (std::vector<uint64_t>{1, 4, 5, 3, 2}));
}

TEST(ThreadMover, CancelsOnlyUnstartedMoves) {
  HeldMover mover;
  mover->start(move(2));
  EXPECT_FALSE(mover->cancel(1));
  EXPECT_TRUE(mover->cancel(2));
  EXPECT_FALSE(mover->cancel(2));
  mover.open();
  EXPECT_EQ(wait_for(*mover, 1)[0].id, 1u);
  EXPECT_TRUE(mover->poll().empty());
}

TEST(ThreadMover, BandwidthLimitDelaysCopiesNotDestructor) {
  ThreadMover mover({1, 1e6}, [](const Move&) { return Status(); }, {}, real_clock());
  mover.start(move(1, Urgency::kBackground, 20'000));
  EXPECT_GE(wait_for(mover, 1)[0].seconds, 0.02);
  mover.start(move(2, Urgency::kBackground, int64_t{1} << 40));  // not waited for at the end
}

}  // namespace
}  // namespace valora::memory
