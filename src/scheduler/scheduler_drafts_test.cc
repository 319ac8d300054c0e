// The number of guesses in a step, and their outcome.
#include <gtest/gtest.h>

#include <algorithm>

#include "memory/pool.h"
#include "memory/simulated_mover.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/fake_runner.h"

namespace valora::scheduler {
namespace {

// Always guesses zeros.
class ZeroProposer final : public Proposer {
 public:
  int most() const override { return 4; }
  std::vector<int32_t> propose(Request&, int most) const override {
    return std::vector<int32_t>(static_cast<size_t>(most), 0);
  }
};

class Drafts : public ::testing::Test {
 protected:
  void start(StepCosts costs, int batched = 64, int32_t blocks = 16) {
    pool_ = std::make_unique<memory::Pool>(memory::PoolConfig{.blocks = blocks, .block_bytes = 1},
                                           mover_, clock_);
    scheduler_ =
        std::make_unique<Scheduler>(SchedulerConfig{.max_num_seqs = 8,
                                                    .max_num_batched_tokens = batched,
                                                    .costs = costs,
                                                    .proposer = std::make_shared<ZeroProposer>()},
                                    *pool_, make_policy("unmerged").value(), clock_);
  }
  // Requests with computed prompts and one token of their answer each.
  std::vector<Request*> decoding(int count, int prompt, int most_tokens) {
    std::vector<Request*> requests;
    for (int i = 0; i < count; ++i) {
      auto request = std::make_shared<Request>();
      request->id = ++ids_;
      request->tokens.assign(static_cast<size_t>(prompt), 1);
      request->prompt_tokens = prompt;
      requests.push_back(request.get());
      EXPECT_TRUE(scheduler_->add(request).ok());
    }
    while (std::ranges::any_of(requests,
                               [](const Request* r) { return r->generated_tokens() == 0; })) {
      const StepPlan plan = scheduler_->plan();
      scheduler_->complete(plan);
      for (const StepItem& item : plan.items)
        if (item.yields) item.request->tokens.push_back(1);
    }
    for (Request* request : requests) request->most_tokens = most_tokens;
    return requests;
  }
  Request& decoding(int prompt, int most_tokens) { return *decoding(1, prompt, most_tokens)[0]; }
  void TearDown() override {
    while (scheduler_ && scheduler_->last()) scheduler_->finish(*scheduler_->last());
  }

  SimulatedClock clock_;
  memory::SimulatedMover mover_{{}, clock_};
  std::unique_ptr<memory::Pool> pool_;
  std::unique_ptr<Scheduler> scheduler_;
  RequestId ids_ = 0;
};

TEST_F(Drafts, RunWithLastTokenAndCorrectOnesCount) {
  start({});
  Request& request = decoding(5, 100);
  StepPlan plan = scheduler_->plan();
  ASSERT_EQ(plan.items.size(), 1u);
  EXPECT_EQ(plan.items[0].tokens, 5);
  EXPECT_EQ(plan.items[0].scored, 5);
  EXPECT_EQ(plan.total_tokens, 5);
  EXPECT_EQ(plan.shape.decode_tokens, 5);
  EXPECT_EQ(plan.shape.prefill_tokens, 0);
  plan.items[0].rejected = 2;
  scheduler_->complete(plan);
  EXPECT_EQ(request.computed_tokens, 5 + 1 + 2);
  EXPECT_EQ(scheduler_->stats().drafts, 1u);
  EXPECT_EQ(scheduler_->stats().draft_tokens, 4u);
  EXPECT_EQ(scheduler_->stats().right_drafts, 2u);
  request.tokens.insert(request.tokens.end(), {0, 0, 7});
  EXPECT_EQ(request.remaining_tokens(), 1);
  EXPECT_EQ(scheduler_->check(), "");
}

TEST_F(Drafts, DeferredResultAcceptsNoDrafts) {
  start({});
  Request& request = decoding(5, 100);
  StepPlan plan = scheduler_->plan();
  plan.items[0].rejected = 5;
  scheduler_->complete(plan);
  EXPECT_EQ(request.computed_tokens, 5);
  EXPECT_EQ(scheduler_->stats().drafts, 0u);
  EXPECT_EQ(scheduler_->plan().items[0].tokens, 5) << "the same step again";
}

TEST_F(Drafts, NeverExceedMaxTokens) {
  start({});
  Request& request = decoding(5, 8);
  EXPECT_EQ(scheduler_->plan().items[0].drafts.size(), 1u) << "two tokens are left, one is a draft";
  request.most_tokens = 7;
  EXPECT_TRUE(scheduler_->plan().items[0].drafts.empty());
}

TEST_F(Drafts, RequestsWithoutDraftingGetNone) {
  start({});
  decoding(5, 0);
  EXPECT_TRUE(scheduler_->plan().items[0].drafts.empty());
}

TEST_F(Drafts, RequestsTakeStepTokensBeforeDrafts) {
  start({}, 4);
  decoding(4, 2, 100);
  const StepPlan plan = scheduler_->plan();
  EXPECT_EQ(plan.items.size(), 4u);
  EXPECT_EQ(plan.total_tokens, 4);
}

TEST_F(Drafts, PreemptNoRequest) {
  start({}, 64, 3);
  decoding(2, 14, 40);  // both have room for their last token; one more block is free
  const StepPlan plan = scheduler_->plan();
  ASSERT_EQ(plan.items.size(), 2u);
  EXPECT_EQ(plan.items[0].drafts.size() + plan.items[1].drafts.size(), 4u)
      << "drafts of one fit into the free block";
  EXPECT_EQ(scheduler_->stats().preemptions, 0u);
}

TEST_F(Drafts, CountFollowsExpectedGain) {
  start({.step = 10e-3, .token = 1e-3});
  Request& request = decoding(5, 1000);
  // A guess pays if its chance is at least 1 in 11: the third has 1 in 8, a fourth would have 1
  // in 16.
  EXPECT_EQ(scheduler_->plan().items[0].drafts.size(), 3u);
  request.drafts.right = 0.3;  // 0.3, 0.09: not the second
  EXPECT_EQ(scheduler_->plan().items[0].drafts.size(), 1u);
  request.drafts.right = 0.01;
  EXPECT_EQ(scheduler_->plan().items[0].drafts.size(), 0u);
}

TEST_F(Drafts, RowCostFollowsMeasurements) {
  DraftCosts costs;
  EXPECT_DOUBLE_EQ(costs.row_seconds(1e-3), 1e-3);
  for (int i = 0; i < 100; ++i) costs.observe(10e-3, 0, 20e-3);
  EXPECT_NEAR(costs.plain_seconds(10e-3), 20e-3, 1e-6) << "steps take twice their estimate";
  for (int i = 0; i < 10; ++i) costs.observe(10e-3, 4, 28e-3);
  EXPECT_NEAR(costs.row_seconds(1e-3), 2e-3, 1e-5);
}

TEST_F(Drafts, NewRequestStartsWithAcceptanceRateOfAdapter) {
  start({.step = 10e-3, .token = 1e-3});
  Request& first = decoding(5, 1000);
  for (int i = 0; i < 40; ++i) {
    StepPlan plan = scheduler_->plan();
    StepItem& item = plan.items[0];
    item.rejected = static_cast<int>(item.drafts.size());
    scheduler_->complete(plan);
    first.tokens.push_back(1);
  }
  scheduler_->finish(first);
  Request& second = decoding(5, 1000);
  EXPECT_TRUE(scheduler_->plan().items[0].drafts.empty()) << "its guesses are as bad";
  second.adapter = 3;
  EXPECT_FALSE(scheduler_->plan().items[0].drafts.empty())
      << "guesses under another adapter have no record";
}

TEST_F(Drafts, RejectedDraftsAreRetriedOccasionally) {
  start({.step = 10e-3, .token = 1e-3});
  Request& request = decoding(5, 1000);
  request.drafts.right = 0.01;
  int tried = 0;
  for (int i = 0; i < 100; ++i) {
    StepPlan plan = scheduler_->plan();
    StepItem& item = plan.items[0];
    tried += item.drafts.empty() ? 0 : 1;
    item.rejected = 0;  // correct, if any
    const size_t tokens = item.drafts.size() + 1;
    scheduler_->complete(plan);
    request.tokens.insert(request.tokens.end(), tokens, 0);
    if (request.drafts.right > 0.09) break;
  }
  EXPECT_EQ(tried, 1) << "one right guess makes the next one worth its time";
}

}  // namespace
}  // namespace valora::scheduler
