// Log probabilities of prompt tokens in an engine with a tiny model: the same however the prompt is
// computed. tests/parity compares them with transformers.
#include <cmath>

#include "engine/testing/engine_fixture.h"
#include "serving/sampling/prompt_logprobs.h"

namespace valora {
namespace {

using namespace testing;

// Records the prompts of a request's choices.
class PromptSink final : public ResponseSink {
 public:
  void on_output(OutputChunk chunk) override {
    if (chunk.prompt) prompts[chunk.index] = chunk.prompt;
  }
  void on_done(const FinalInfo& info) override {
    cached = info.usage.cached_tokens;
    preemptions = info.preemptions;
    ended.set_value({});
  }
  void on_error(const Error& error) override { ended.set_value(error); }

  std::map<int, std::shared_ptr<const std::vector<TokenOutput>>> prompts;
  int cached = -1, preemptions = 0;
  std::promise<Status> ended;
};

class PromptLogprobsTest : public EngineTest {
 protected:
  static GenerateRequest scored(int tokens, int first, int top = 3) {
    GenerateRequest request = ask(numbered_prompt(tokens, first), 4);
    request.sampling.prompt_logprobs = top;
    return request;
  }
  std::shared_ptr<PromptSink> begin(const GenerateRequest& request) {
    auto sink = std::make_shared<PromptSink>();
    submit(request, sink);
    return sink;
  }
  std::shared_ptr<PromptSink> finish(const GenerateRequest& request) {
    auto sink = begin(request);
    const Status status = sink->ended.get_future().get();
    EXPECT_TRUE(status.ok()) << status.error().message;
    return sink;
  }
  static void expect_same(const std::vector<TokenOutput>& a, const std::vector<TokenOutput>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].chosen.id, b[i].chosen.id);
      EXPECT_NEAR(a[i].chosen.logprob, b[i].chosen.logprob, 1e-4) << i;
      ASSERT_EQ(a[i].top.size(), b[i].top.size());
      for (size_t k = 0; k < a[i].top.size(); ++k)
        EXPECT_NEAR(a[i].top[k].logprob, b[i].top[k].logprob, 1e-4) << i;
    }
  }
};

TEST_F(PromptLogprobsTest, EveryTokenHasLogprobAndRank) {
  start();
  const auto sink = finish(scored(40, 5));
  const std::vector<TokenOutput>& prompt = *sink->prompts.at(0);
  ASSERT_EQ(prompt.size(), 40u);
  EXPECT_TRUE(prompt[0].top.empty());
  for (size_t i = 0; i < prompt.size(); ++i)
    EXPECT_EQ(prompt[i].chosen.id, static_cast<int32_t>(5 + i));
  for (size_t i = 1; i < prompt.size(); ++i) {
    const TokenOutput& token = prompt[i];
    ASSERT_EQ(token.top.size(), 3u);
    EXPECT_LT(token.chosen.logprob, 0);
    EXPECT_GE(token.chosen.rank, 1);
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(token.top[k].rank, k + 1);
      if (token.chosen.rank > k + 1) {
        EXPECT_GE(token.top[k].logprob, token.chosen.logprob);
      }
      if (token.top[k].id == token.chosen.id) {
        EXPECT_EQ(token.chosen.logprob, token.top[k].logprob);
      }
    }
  }
}

TEST_F(PromptLogprobsTest, ChunksOfThePromptChangeNothing) {
  start();
  const auto whole = finish(scored(90, 3));
  options_.max_num_batched_tokens = 7;
  start();
  const auto parts = finish(scored(90, 3));
  expect_same(*whole->prompts.at(0), *parts->prompts.at(0));
}

TEST_F(PromptLogprobsTest, CachedPromptIsRecomputed) {
  start();
  const auto plain = ask(numbered_prompt(64, 9), 4);
  run(plain);
  const auto first = finish(scored(64, 9)), second = finish(scored(64, 9));
  EXPECT_EQ(first->cached, 0);
  EXPECT_EQ(second->cached, 0);
  expect_same(*first->prompts.at(0), *second->prompts.at(0));
  EXPECT_GT(run(plain).done->usage.cached_tokens, 0) << "others keep their prefix";
}

TEST_F(PromptLogprobsTest, AllChoicesReportPromptLogprobs) {
  start();
  GenerateRequest request = scored(50, 1, 0);
  request.sampling.n = 3;
  const auto sink = finish(request);
  ASSERT_EQ(sink->prompts.size(), 3u);
  for (const auto& [index, prompt] : sink->prompts) EXPECT_EQ(prompt, sink->prompts.at(0));
}

TEST_F(PromptLogprobsTest, SameWithoutGeneratedTokens) {
  start();
  GenerateRequest request = scored(50, 1);
  const auto answered = finish(request);
  request.sampling.max_tokens = 0;
  request.sampling.n = 2;
  const auto alone = finish(request);
  ASSERT_EQ(alone->prompts.size(), 2u);
  expect_same(*alone->prompts.at(0), *answered->prompts.at(0));
}

TEST_F(PromptLogprobsTest, PreemptionChangesNothing) {
  start();
  std::vector<GenerateRequest> requests;
  std::vector<std::shared_ptr<PromptSink>> alone, crowded;
  for (int i = 0; i < 15; ++i) {  // enough that some run together
    requests.push_back(scored(20 + i % 5, 40 * i));
    requests.back().sampling.max_tokens = 40;
    alone.push_back(finish(requests.back()));
  }
  options_.memory.pool_bytes = 9 * kTinyBlockBytes;
  options_.max_model_len = 100;
  start();
  for (const GenerateRequest& request : requests) crowded.push_back(begin(request));
  int preemptions = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSERT_TRUE(crowded[i]->ended.get_future().get().ok());
    expect_same(*alone[i]->prompts.at(0), *crowded[i]->prompts.at(0));
    preemptions += crowded[i]->preemptions;
  }
  EXPECT_GT(preemptions, 0);
}

TEST_F(PromptLogprobsTest, ExcessiveRequestsAreRefused) {
  options_.max_logprobs = 5;
  start();
  const auto refused = engine_->submit(scored(4, 0, 6), std::make_shared<PromptSink>());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().param, "prompt_logprobs");
  EXPECT_TRUE(serving::PromptLogprobs::check(1 << 16, 3).ok());
  EXPECT_FALSE(serving::PromptLogprobs::check(1 << 16, 4).ok());
}

}  // namespace
}  // namespace valora
