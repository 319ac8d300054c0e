// Requests in an engine with a tiny model: results that must not depend on how steps are formed.
#include <thread>

#include "base/threads/parts_done.h"
#include "engine/testing/engine_fixture.h"

namespace valora {
namespace {

using namespace testing;

TEST_F(EngineTest, ConcurrentRequestsGetTheAnswersTheyGetAlone) {
  options_.max_num_batched_tokens = 24;
  options_.max_num_seqs = 5;
  start();
  std::vector<GenerateRequest> requests;
  for (int i = 0; i < 24; ++i)
    requests.push_back(ask(numbered_prompt(3 + 2 * i, 7 * i), 5 + i % 9));
  std::vector<std::vector<int32_t>> alone;
  for (const auto& request : requests) alone.push_back(tokens_of(request));
  std::vector<std::shared_ptr<WaitingSink>> sinks(requests.size());
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c)
    clients.emplace_back([&, c] {
      for (size_t i = c; i < requests.size(); i += 4) sinks[i] = submit(requests[i]);
    });
  for (auto& client : clients) client.join();
  for (size_t i = 0; i < requests.size(); ++i) {
    const Answer answer = sinks[i]->wait();
    ASSERT_TRUE(answer.done);
    EXPECT_EQ(answer.first().tokens, alone[i]) << i;
    EXPECT_EQ(answer.first().finish->reason, FinishReason::kLength);
    EXPECT_EQ(answer.done->usage.prompt_tokens, 3 + 2 * static_cast<int>(i));
    EXPECT_EQ(answer.done->usage.completion_tokens, 5 + static_cast<int>(i) % 9);
    EXPECT_EQ(answer.done->prompt_token_ids, std::get<1>(requests[i].prompt));
    EXPECT_EQ(answer.prompt, answer.done->prompt_token_ids);
  }
}

TEST_F(EngineTest, ChunkedPrefillChangesNothing) {
  start();
  const auto request = ask(numbered_prompt(61, 3), 8);
  const auto whole = tokens_of(request);
  options_.max_num_batched_tokens = 5;
  start();
  EXPECT_EQ(tokens_of(request), whole);
}

TEST_F(EngineTest, PreemptionChangesNothing) {
  start();
  std::vector<GenerateRequest> requests;
  for (int i = 0; i < 5; ++i) requests.push_back(ask(numbered_prompt(20 + i, 40 * i), 40));
  expect_the_same_when_preempted(requests);
}

TEST_F(EngineTest, SeveralSequencesDrawFromTheirOwnStreams) {
  start();
  auto request = ask(numbered_prompt(12, 5), 9);
  request.sampling.temperature = 1;
  request.sampling.seed = 40;
  std::vector<std::vector<int32_t>> single;
  for (int i = 0; i < 3; ++i) {
    request.sampling.seed = 40 + i;
    single.push_back(tokens_of(request));
  }
  request.sampling.seed = 40;
  request.sampling.n = 3;
  const Answer answer = run(request);
  ASSERT_EQ(answer.choices.size(), 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(answer.choices.at(i).tokens, single[i]);
  EXPECT_NE(single[0], single[1]);
  EXPECT_EQ(answer.done->usage.prompt_tokens, 12);
  EXPECT_EQ(answer.done->usage.completion_tokens, 27);
}

TEST_F(EngineTest, StopStringsAndTokensEndWithTheirReason) {
  start();
  auto request = ask(numbered_prompt(12, 90), 30);
  const Answer whole = run(request);
  const std::string text = whole.first().text;
  ASSERT_GT(text.size(), 12);
  const std::string stop = text.substr(text.size() / 2, 3);
  request.sampling.stop = {stop};
  const Answer stopped = run(request);
  EXPECT_EQ(stopped.first().text, text.substr(0, text.find(stop)));
  EXPECT_EQ(stopped.first().finish->reason, FinishReason::kStop);
  EXPECT_EQ(std::get<std::string>(stopped.first().finish->stop_reason), stop);
  EXPECT_LT(stopped.done->usage.completion_tokens, 30);

  request.sampling.stop.clear();
  const int32_t token = whole.first().tokens[4];
  request.sampling.stop_token_ids = {token};
  const Answer by_token = run(request);
  EXPECT_EQ(std::get<int32_t>(by_token.first().finish->stop_reason), token);
  const auto at = std::find(whole.first().tokens.begin(), whole.first().tokens.end(), token);
  EXPECT_EQ(by_token.first().tokens, std::vector<int32_t>(whole.first().tokens.begin(), at + 1));

  request.sampling.min_tokens = 12;
  EXPECT_GE(tokens_of(request).size(), 12);
}

TEST_F(EngineTest, EachLayerCountsAsProgress) {
  start();
  const uint64_t before = parts_done();
  EXPECT_TRUE(run(ask(numbered_prompt(4, 1), 1)).done);
  EXPECT_EQ(parts_done() - before, uint64_t{kLayers});
}

}  // namespace
}  // namespace valora
