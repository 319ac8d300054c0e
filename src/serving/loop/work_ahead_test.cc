// Work that the model does while there are no requests.
#include <chrono>

#include "serving/testing/fake_engine_fixture.h"

namespace valora::serving::testing {
namespace {

class WorkAhead : public FakeEngineTest {
 protected:
  ~WorkAhead() override { engine_.reset(); }

  // Pieces that end at once.
  void count_pieces(int pieces) {
    prepare_ahead_ = [this, pieces] { return ++done_ < pieces; };
  }

  std::atomic<int> done_ = 0;
};

TEST_F(WorkAhead, AllPiecesAreDoneWhileIdle) {
  count_pieces(20);
  start();
  wait_until([&] { return done_ == 20; });
  EXPECT_EQ(tokens_of(ask(numbered_prompt(9, 1), 5)).size(), 5u);
  wait_until([&] { return done_ == 21; });  // a step may have left some to do
}

TEST_F(WorkAhead, RequestWaitsForOnePieceAtMost) {
  Gate gate;
  std::atomic<int> at_step = 0;
  prepare_ahead_ = [&] {
    if (++done_ == 3) {
      gate.arrive();
      gate.pass();
    }
    return done_ < 100'000;
  };
  on_step_ = [&](const scheduler::StepPlan&) {
    if (at_step == 0) at_step = done_.load();
    return Status();
  };
  start();
  gate.wait_for_arrival();
  const auto sink = submit(ask(numbered_prompt(9, 1), 5));
  gate.open();
  EXPECT_EQ(sink->wait().first().tokens.size(), 5u);
  EXPECT_EQ(at_step, 3) << "no piece begins while a request is there";
}

TEST_F(WorkAhead, NoneIsDoneBesideRequests) {
  std::atomic<int> beside = 0;
  std::atomic<bool> running = false;
  prepare_ahead_ = [&] {
    beside += running ? 1 : 0;
    return true;
  };
  on_step_ = [&](const scheduler::StepPlan&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Status();
  };
  start();
  for (int i = 0; i < 3; ++i) {
    const auto sink =
        std::make_shared<WaitingSink>([&](int tokens) { running = tokens > 0 && tokens < 30; });
    submit(ask(numbered_prompt(9, i), 30), sink);
    EXPECT_TRUE(sink->wait().done);
  }
  EXPECT_EQ(beside, 0);
}

TEST_F(WorkAhead, ShutdownWaitsForOnePiece) {
  Gate gate;
  prepare_ahead_ = [&] {
    if (++done_ == 1) {
      gate.arrive();
      gate.pass();
    }
    return true;  // without end
  };
  start();
  gate.wait_for_arrival();
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gate.open();
  });
  engine_.reset();
  opener.join();
  EXPECT_LE(done_, 2);
}

TEST_F(WorkAhead, FaultEndsTheEngineOnce) {
  prepare_ahead_ = [&]() -> bool {
    ++done_;
    throw std::runtime_error("the device is lost");
  };
  start();
  wait_until([&] { return !engine_->healthy(); });
  EXPECT_FALSE(
      engine_->submit(ask(numbered_prompt(9, 1), 5), std::make_shared<WaitingSink>()).ok());
  EXPECT_EQ(done_, 1);
}

}  // namespace
}  // namespace valora::serving::testing
