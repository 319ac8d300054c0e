// The watch over the engine's progress, with copies and steps that never end.
#include <gmock/gmock.h>

#include <thread>

#include "base/threads/parts_done.h"
#include "serving/testing/fake_engine_fixture.h"

namespace valora::serving {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// A copy to the pool takes hours; the watch looks twice a second.
class WatchedEngineTest : public FakeEngineTest {
 protected:
  static constexpr Duration kTimeout = std::chrono::seconds(5);

  WatchedEngineTest() { copy_bandwidth_ = 1e-3; }
  void start_with_adapter() {
    start();
    EXPECT_TRUE(load("one", "one").ok());
  }
  void start_watched() {
    start_with_adapter();
    engine_->start_watchdog(kTimeout);
  }
  GenerateRequest standing() const { return with(base_, {{"one", 1}}); }
  void wait_for_stall() {
    clock_.advance(kTimeout + std::chrono::seconds(1));
    wait_until([this] { return !engine_->standstill().empty(); });
  }
  std::future<void> begin_drain() {
    engine_->drain([this] { drained_.set_value(); });
    return drained_.get_future();
  }
  static bool ends(const std::future<void>& future) {
    return future.wait_for(std::chrono::minutes(1)) == std::future_status::ready;
  }

  const GenerateRequest base_ = ask(numbered_prompt(40, 3), 12);

 private:
  std::promise<void> drained_;
};

TEST_F(WatchedEngineTest, UnfinishedCopyStallsUntilStepRuns) {
  start_watched();
  const auto waiting = submit(standing());
  wait_until([this] { return engine_->stats().waiting == 1; });
  wait_for_stall();
  EXPECT_THAT(engine_->standstill(), HasSubstr(": 0 running, 1 waiting (1 for adapters to load, "));
  EXPECT_THAT(engine_->standstill(), HasSubstr("; 1 of these hold adapters or KV"));
  EXPECT_EQ(engine_->stats().stalls, 1u);
  EXPECT_TRUE(engine_->healthy());
  EXPECT_TRUE(run(base_).done) << "what needs no adapter is still served";
  wait_until([this] { return engine_->standstill().empty(); });
  EXPECT_EQ(engine_->check(), "");
  EXPECT_EQ(waiting->calls(), 0) << "without a drain it waits on";
}

TEST_F(WatchedEngineTest, DrainEndsStalledRequests) {
  start_watched();
  const auto waiting = submit(standing()), other = submit(standing());
  const std::future<void> drained = begin_drain();
  wait_until([this] { return engine_->stats().waiting == 2; });
  clock_.advance(kTimeout + std::chrono::seconds(1));
  ASSERT_TRUE(ends(drained));
  for (const auto& sink : {waiting, other}) {
    const Answer answer = sink->wait();
    ASSERT_TRUE(answer.error);
    EXPECT_EQ(answer.error->code, ErrorCode::kUnavailable);
  }
  wait_until([this] { return engine_->stats().waiting == 0; });
  EXPECT_EQ(engine_->check(), "");
}

TEST_F(WatchedEngineTest, DrainEndsWithStuckEngineThread) {
  start_watched();
  Gate gate;
  const auto running = gated_sink(gate);
  submit(ask(numbered_prompt(4, 1), 30), running);
  gate.wait_for_arrival();
  const auto waiting = submit(ask(numbered_prompt(9, 1), 3));
  wait_for_stall();
  EXPECT_THAT(engine_->standstill(),
              HasSubstr(": the engine thread has not returned from a step and holds 2 requests; "));
  EXPECT_TRUE(ends(begin_drain()));
  EXPECT_EQ(running->wait().error->code, ErrorCode::kUnavailable);
  EXPECT_EQ(waiting->wait().error->code, ErrorCode::kUnavailable);
  const int calls = running->calls();
  gate.open();
  wait_until([this] { return engine_->standstill().empty(); });
  EXPECT_EQ(running->calls(), calls) << "nothing after its end";
  EXPECT_EQ(engine_->stats().running, 0);
}

TEST_F(WatchedEngineTest, AdvancingStepIsNotStall) {
  start_watched();
  Gate gate;
  const auto running = gated_sink(gate);
  submit(ask(numbered_prompt(4, 1), 3), running);
  gate.wait_for_arrival();
  // While layers keep running, a step may take many times the timeout.
  for (int i = 0; i < 8; ++i) {
    ++parts_done();
    clock_.advance(kTimeout / 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));  // until the next look
    EXPECT_EQ(engine_->standstill(), "");
  }
  wait_for_stall();
  gate.open();
  EXPECT_TRUE(running->wait().done);
}

TEST_F(WatchedEngineTest, NoStallReportedWithoutWatch) {
  start_with_adapter();
  submit(standing());
  clock_.advance(std::chrono::hours(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_EQ(engine_->standstill(), "");
}

}  // namespace
}  // namespace valora::serving
