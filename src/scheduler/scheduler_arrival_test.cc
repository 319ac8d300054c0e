// A request with a picture competing with later texts, in simulated time.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "memory/pool.h"
#include "memory/simulated_mover.h"
#include "scheduler/step_loop.h"

namespace valora::scheduler {
namespace {

using namespace std::chrono_literals;

constexpr StepCosts kArrivalCosts{.step = 0.010, .prefill_token = 0.001, .decode_token = 0.001};

// The tower needs `tower_` seconds for one picture; it works for 20 ms between two steps, and for
// 50 ms if no step runs.
class ArrivalTest : public ::testing::Test, StepExecutor, StepListener {
 protected:
  std::shared_ptr<Request> add(int prompt, int answer, int image = 0) {
    auto request = std::make_shared<Request>();
    request->id = ++ids_;
    request->arrival = clock_.now();
    request->prompt_tokens = prompt;
    request->tokens.resize(prompt, static_cast<int32_t>(ids_));
    if (image > 0) request->identity.media = {{1, image, DigestBuilder().add(ids_).finish()}};
    answers_[request->id] = answer;
    EXPECT_TRUE(scheduler_.add(request).ok());
    return request;
  }
  void step() {
    loop_.step();
    ASSERT_EQ(scheduler_.check(), "");
  }
  // Seconds until the picture's first token while a text of 400 tokens arrives every 0.1 s.
  double first_token_beside_texts(const Request& picture) {
    const TimePoint begin = clock_.now();
    for (int texts = 0; picture.generated_tokens() == 0 && texts < 1000;) {
      for (; clock_.now() - begin >= texts * 100ms; ++texts) add(400, 3);
      step();
    }
    return seconds(clock_.now() - begin);
  }

  SimulatedClock clock_;
  double tower_ = 1;
  double text_tokens_ = 0;

 private:
  bool ready(const Request& request, int, int) const override {
    return request.identity.media.empty() || tower_ <= 0;
  }
  std::vector<FailedRequest> prepare(const StepPlan& plan) override {
    if (plan.preparing.empty() || tower_ <= 0) return {};
    const double part = std::min(tower_, plan.items.empty() ? 0.05 : 0.02);
    tower_ -= part < 0.001 ? tower_ : part;
    clock_.advance(from_seconds(part));
    return {};
  }
  Result<std::vector<StepOutput>> run(const StepPlan& plan) override {
    clock_.advance(from_seconds(kArrivalCosts.seconds(plan.shape)));
    std::vector<StepOutput> outputs;
    for (const StepItem& item : plan.items) {
      if (item.tokens > 1 && item.request->identity.media.empty()) text_tokens_ += item.tokens;
      if (item.yields) outputs.push_back({.request = item.request});
    }
    return outputs;
  }
  void on_planned(const StepPlan&) override {}
  void on_output(StepOutput& output) override {
    Request& request = *output.request;
    request.tokens.push_back(1);
    if (request.generated_tokens() == answers_.at(request.id)) scheduler_.finish(request);
  }
  void on_failed(Request& request, const Error&) override { scheduler_.finish(request); }

  memory::SimulatedMover mover_{{}, clock_};
  memory::Pool pool_{{.blocks = 4000}, mover_, clock_};
  Scheduler scheduler_{{.max_num_seqs = 64,
                        .max_num_batched_tokens = 2048,
                        .max_decode_gap = 0.5,
                        .max_media_gap = 0.03,
                        .costs = kArrivalCosts},
                       pool_,
                       make_policy("unmerged").value(),
                       clock_};
  StepLoop loop_{scheduler_, *this, *this, clock_};
  RequestId ids_ = 0;
  std::map<RequestId, int> answers_;
};

// Alone it takes 1.4 s, 1 s of it in the tower. Without a limit, each step between two parts of the
// tower would take up to two seconds of later prompts.
TEST_F(ArrivalTest, LaterTextsDelayPictureByBoundedFactor) {
  const auto picture = add(400, 5, 300);
  EXPECT_LT(first_token_beside_texts(*picture), 3 * 1.4);
  EXPECT_GT(text_tokens_, 300) << "they do not wait for the picture either";
}

TEST_F(ArrivalTest, LaterTextsAndDecodesDelayPictureByBoundedFactor) {
  for (int i = 0; i < 4; ++i) add(10, 100000);
  for (int i = 0; i < 20; ++i) step();
  const auto picture = add(400, 5, 300);
  EXPECT_LT(first_token_beside_texts(*picture), 4 * 1.4);
}

// An earlier text keeps its own limit.
TEST_F(ArrivalTest, PictureDoesNotDelayEarlierText) {
  const auto text = add(1500, 2);
  clock_.advance(1ms);
  const auto picture = add(400, 5, 300);
  const TimePoint begin = clock_.now();
  while (text->generated_tokens() == 0) step();
  EXPECT_LT(seconds(clock_.now() - begin), 1.7);
  EXPECT_EQ(picture->generated_tokens(), 0);
}

}  // namespace
}  // namespace valora::scheduler
