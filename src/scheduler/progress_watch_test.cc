#include "scheduler/progress_watch.h"

#include <gtest/gtest.h>

#include "memory/pool.h"
#include "memory/simulated_mover.h"
#include "scheduler/step_loop.h"

namespace valora::scheduler {
namespace {

using Seconds = std::chrono::seconds;
using WatchChange = ProgressWatch::Change;

class WatchTest : public ::testing::Test {
 protected:
  WatchChange look_after(Duration time, bool busy = true) {
    clock_.advance(time);
    return watch_.look(progress_, busy, clock_.now());
  }

  SimulatedClock clock_;
  Progress progress_;
  ProgressWatch watch_{Seconds(60), clock_.now()};
};

TEST_F(WatchTest, RequestsWithoutProgressAreStalled) {
  EXPECT_EQ(look_after(Seconds(59)), WatchChange::kNone);
  EXPECT_FALSE(watch_.stalled());
  EXPECT_EQ(look_after(Seconds(1)), WatchChange::kStalled);
  EXPECT_TRUE(watch_.stalled());
  EXPECT_EQ(clock_.now() - watch_.stepped_at(), Seconds(60));
  EXPECT_EQ(look_after(Seconds(100)), WatchChange::kNone) << "it is told once";
}

TEST_F(WatchTest, NoStallWithoutRequests) {
  EXPECT_EQ(look_after(Seconds(1000), false), WatchChange::kNone);
  EXPECT_EQ(look_after(Seconds(59)), WatchChange::kNone) << "counted from the request";
  EXPECT_EQ(look_after(Seconds(1)), WatchChange::kStalled);
  EXPECT_EQ(look_after(Seconds(1), false), WatchChange::kResumed) << "they have left";
  EXPECT_FALSE(watch_.stalled());
}

TEST_F(WatchTest, EachKindOfProgressPostponesStall) {
  for (uint64_t* number : {&progress_.steps, &progress_.grants, &progress_.moves}) {
    EXPECT_EQ(look_after(Seconds(50)), WatchChange::kNone);
    ++*number;
    EXPECT_EQ(look_after(Seconds(5)), WatchChange::kNone);
  }
  EXPECT_EQ(look_after(Seconds(59)), WatchChange::kNone);
  EXPECT_EQ(look_after(Seconds(1)), WatchChange::kStalled);
}

TEST_F(WatchTest, OnlyStepEndsStall) {
  EXPECT_EQ(look_after(Seconds(60)), WatchChange::kStalled);
  ++progress_.grants, ++progress_.moves;
  EXPECT_EQ(look_after(Seconds(1)), WatchChange::kNone) << "what was given back is granted again";
  ++progress_.steps;
  EXPECT_EQ(look_after(Seconds(1)), WatchChange::kResumed);
  EXPECT_EQ(look_after(Seconds(59)), WatchChange::kNone);
  EXPECT_EQ(look_after(Seconds(1)), WatchChange::kStalled) << "a second stall";
}

TEST_F(WatchTest, EndlessCopyingWithoutStepsIsStall) {
  int looks = 0;
  for (; look_after(Seconds(10)) == WatchChange::kNone; ++looks)
    ++progress_.moves, ++progress_.grants;
  EXPECT_EQ(looks + 1, ProgressWatch::kWithoutSteps * 6);
}

// Yields one token per item, unless it fails the step.
class PlainExecutor final : public StepExecutor {
 public:
  std::vector<FailedRequest> prepare(const StepPlan&) override { return {}; }
  Result<std::vector<StepOutput>> run(const StepPlan& plan) override {
    std::vector<StepOutput> outputs;
    for (const StepItem& item : plan.items)
      if (item.yields) outputs.push_back({item.request, {{.id = 1}}, {}, {}});
    return outputs;
  }
};

// A step loop whose adapters never arrive: each copy takes a year.
class StalledLoop : public WatchTest, StepListener {
 protected:
  std::shared_ptr<Request> add(int adapter) {
    auto request = std::make_shared<Request>();
    request->id = ++ids_;
    request->prompt_tokens = 4;
    request->tokens.resize(4, 1);
    if (adapter > 0)
      request->identity.adapters = {{DigestBuilder().add("adapter").add(adapter).finish(), 6}};
    EXPECT_TRUE(scheduler_.add(request).ok());
    return request;
  }
  WatchChange step_and_look(Duration time) {
    loop_.step();
    progress_ = loop_.progress();
    return look_after(time);
  }
  void on_planned(const StepPlan&) override {}
  void on_output(StepOutput& output) override { scheduler_.finish(*output.request); }
  void on_failed(Request& request, const Error&) override { scheduler_.finish(request); }

  memory::SimulatedMover mover_{{.latency = 3.15e7}, clock_};
  memory::Pool pool_{{.blocks = 16}, mover_, clock_};
  Scheduler scheduler_{{}, pool_, make_policy("unmerged").value(), clock_};
  PlainExecutor executor_;
  StepLoop loop_{scheduler_, executor_, *this, clock_};

 private:
  RequestId ids_ = 0;
};

TEST_F(StalledLoop, StepAndGrantCountAsProgress) {
  add(0);
  loop_.step();
  EXPECT_EQ(loop_.progress(), (Progress{.steps = 1, .grants = 1}));
  loop_.step();
  EXPECT_EQ(loop_.progress(), (Progress{.steps = 1, .grants = 1})) << "there was nothing to run";
}

TEST_F(StalledLoop, UnfinishedCopyStalls) {
  add(1), add(2), add(3);
  EXPECT_EQ(step_and_look(Seconds(30)), WatchChange::kNone);
  const Waits waits = scheduler_.waits();
  EXPECT_EQ(waits.adapters, 2) << "two fit into the pool";
  EXPECT_EQ(waits.room, 1);
  EXPECT_EQ(waits.claims, 3) << "the third one is pinned, too";
  EXPECT_EQ(step_and_look(Seconds(30)), WatchChange::kStalled);
}

TEST_F(StalledLoop, ReleasedClaimsFreeBlocks) {
  add(1), add(2), add(3);
  loop_.step();
  const int free = pool_.stats().free;
  scheduler_.release_claims();
  EXPECT_EQ(scheduler_.waits().claims, 0);
  EXPECT_EQ(pool_.stats().free, free + 6) << "one copy had begun";
  EXPECT_EQ(scheduler_.check(), "");
  EXPECT_EQ(step_and_look(Seconds(1)), WatchChange::kNone);
  EXPECT_EQ(scheduler_.waits().claims, 3) << "claimed again";
}

TEST_F(StalledLoop, StepEndsStall) {
  const auto waiting = add(1);
  EXPECT_EQ(step_and_look(Seconds(60)), WatchChange::kStalled);
  add(0);
  EXPECT_EQ(step_and_look(Seconds(1)), WatchChange::kResumed)
      << "of a request that needs no adapter";
  EXPECT_EQ(step_and_look(Seconds(60)), WatchChange::kStalled);
  clock_.advance(std::chrono::hours(24 * 366));
  EXPECT_EQ(step_and_look(Seconds(1)), WatchChange::kResumed);
  EXPECT_EQ(waiting->state, RequestState::kFinished);
}

}  // namespace
}  // namespace valora::scheduler
