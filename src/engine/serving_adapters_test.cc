// Adapters in an engine with a tiny model: identity, heads, and loading and unloading while
// requests run.
#include <cmath>

#include "engine/testing/engine_fixture.h"

namespace valora {
namespace {

using namespace testing;

class AdapterTest : public TwoAdapterTest {
 protected:
  AdapterTest() { start_with_adapters(); }
};

TEST_F(AdapterTest, MixedBatchAnswersEqualSingleAnswers) {
  const std::vector<GenerateRequest> requests{base_,
                                              with(base_, {{"one", 1}}),
                                              with(base_, {{"two", 1}}),
                                              with(base_, {{"one", 0.5f}}),
                                              with(base_, {{"one", 1}, {"two", -1}}),
                                              with(base_, {{"one", 0}})};
  std::vector<Answer> alone;
  for (const auto& request : requests) alone.push_back(run(request));
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(alone[i].done->usage.cached_tokens, 0)
        << "the cache of another identity was used: " << i;
    for (size_t j = 0; j < i && i < 5; ++j)
      EXPECT_NE(alone[i].first().tokens, alone[j].first().tokens) << i << ' ' << j;
  }
  EXPECT_EQ(alone[5].first().tokens, alone[0].first().tokens);
  std::vector<std::shared_ptr<WaitingSink>> sinks;
  for (int round = 0; round < 3; ++round)
    for (const auto& request : requests) sinks.push_back(submit(request));
  for (size_t i = 0; i < sinks.size(); ++i)
    EXPECT_EQ(sinks[i]->wait().first().tokens, alone[i % requests.size()].first().tokens) << i;
}

TEST_F(AdapterTest, UnloadDoesNotAffectRunningRequests) {
  const auto request = with(base_, {{"one", 1}});
  const auto undisturbed = tokens_of(request);
  Gate gate;
  const auto running = gated_sink(gate, 2);
  submit(request, running);
  gate.wait_for_arrival();
  ASSERT_TRUE(unload("one").ok());
  one_.write("adapter_model.safetensors",
             "");  // a memory map of the old file would fault from here on
  EXPECT_EQ(engine_->submit(request, nullptr).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(engine_->adapters().size(), 1);
  gate.open();
  EXPECT_EQ(running->wait().first().tokens, undisturbed);
  EXPECT_EQ(unload("one").error().code, ErrorCode::kNotFound);
}

TEST_F(AdapterTest, ReloadedNameUsesNewContent) {
  const auto request = with(base_, {{"one", 1}});
  const auto old_tokens = tokens_of(request), new_tokens = tokens_of(with(base_, {{"two", 1}}));
  Gate gate;
  const auto running = gated_sink(gate, 2);
  submit(request, running);
  gate.wait_for_arrival();
  write_tiny_adapter(one_, 13);
  EXPECT_FALSE(load("one", one_.path()).ok()) << "the name is taken";
  ASSERT_TRUE(load("one", one_.path(), true).ok());
  gate.open();
  EXPECT_EQ(running->wait().first().tokens, old_tokens);
  const Answer fresh = run(request);
  EXPECT_EQ(fresh.done->usage.cached_tokens, 0);
  EXPECT_NE(fresh.first().tokens, old_tokens);
  EXPECT_NE(fresh.first().tokens, new_tokens);
  EXPECT_EQ(run(request).done->usage.cached_tokens, 32);
}

TEST_F(AdapterTest, NanFailsOnlyItsRequest) {
  TempDir huge;
  write_overflowing_adapter(huge);
  ASSERT_TRUE(load("huge", huge.path()).ok());
  const auto good = tokens_of(base_);
  std::vector<std::shared_ptr<WaitingSink>> sinks;
  Gate gate;
  const auto first = gated_sink(gate);
  submit(base_, first);
  gate.wait_for_arrival();  // the next three share a step
  const auto before = submit(base_), bad = submit(with(base_, {{"huge", 1}})),
             after = submit(base_);
  gate.open();
  const Answer answer = bad->wait();
  ASSERT_TRUE(answer.error);
  EXPECT_EQ(answer.error->code, ErrorCode::kUnprocessable);
  EXPECT_NE(answer.error->message.find("with the adapter `huge`"), std::string::npos);
  for (const auto& sink : {first, before, after}) EXPECT_EQ(sink->wait().first().tokens, good);
  EXPECT_TRUE(engine_->healthy());
}

TEST_F(AdapterTest, StatsNameTheAdaptersOfEachQueue) {
  Gate gate;
  const auto running = gated_sink(gate, 3);
  submit(with(base_, {{"two", 1}}), running);
  gate.wait_for_arrival();
  EXPECT_EQ(engine_->stats().running_adapters, std::vector<std::string>{"two"});
  EXPECT_TRUE(engine_->stats().waiting_adapters.empty());
  gate.open();
  drain();
  EXPECT_TRUE(engine_->stats().running_adapters.empty());
}

TEST_F(AdapterTest, HeadAnswersWithoutDecoding) {
  TempDir folder;
  write_tiny_adapter(folder, 15, 5);
  folder.write(
      "valora.json",
      R"({"heads": [{"name": "score", "labels": ["a", "b", "c", "d", "e"], "add_generation_prompt": false}]})");
  ASSERT_TRUE(load("judge", folder.path()).ok());
  auto request = with(ask(ChatPrompt{{{"user", {std::string("hello")}}}, {}}, 4), {{"judge", 1}});
  request.task = Task::kClassify;
  const Answer classified = run(request);
  ASSERT_TRUE(classified.done && classified.classification);
  const Classification& result = *classified.classification;
  EXPECT_EQ(result.head, "score");
  ASSERT_EQ(result.probs.size(), 5);
  double total = 0;
  for (int i = 0; i < 5; ++i) {
    total += result.probs[i];
    EXPECT_LE(result.logits[i], result.logits[result.best]);
  }
  EXPECT_NEAR(total, 1, 1e-5);
  EXPECT_EQ(classified.done->usage.completion_tokens, 0);

  // In a chat completion, the head gives the same label for the same prompt.
  request.task = Task::kGenerate;
  const Answer chatted = run(request);
  EXPECT_EQ(chatted.first().text, result.labels[result.best]);
  EXPECT_EQ(chatted.first().finish->reason, FinishReason::kStop);
  EXPECT_EQ(chatted.done->prompt_token_ids, classified.done->prompt_token_ids);
  EXPECT_EQ(chatted.classification->best, result.best);

  request.sampling.n = 3;
  const Answer choices = run(request);
  ASSERT_EQ(choices.choices.size(), 3u);
  for (const auto& [index, choice] : choices.choices) {
    EXPECT_EQ(choice.text, chatted.first().text) << index;
    EXPECT_TRUE(choice.finish) << index;
  }
  request.sampling.n = 1;

  request.head = "";
  EXPECT_EQ(tokens_of(request).size(), 4);
  request.head = "nose";
  EXPECT_EQ(engine_->submit(request, nullptr).error().param, "head");
  request = with(base_, {{"one", 1}});
  request.task = Task::kClassify;
  EXPECT_EQ(engine_->submit(request, nullptr).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(AdapterTest, SeveralNamesShareOneAdapter) {
  TempDir folder;
  write_tiny_adapter(folder, 15, 5);
  folder.write(
      "valora.json",
      R"({"question": "which?", "heads": [{"name": "score", "labels": ["a", "b", "c", "d", "e"]}]})");
  ASSERT_TRUE(load("judge", folder.path()).ok());
  ASSERT_TRUE(
      load({.name = "letter", .same_as = "judge", .head = "score", .question = "which letter?"})
          .ok());
  ASSERT_TRUE(load({.name = "words", .same_as = "judge", .head = ""}).ok());
  auto request = with(base_, {{"judge", 1}});
  const std::string label = run(request).first().text;
  request.head = "";
  const auto words = tokens_of(request);

  EXPECT_EQ(run(with(base_, {{"letter", 1}})).first().text, label);
  const Answer shared = run(with(base_, {{"words", 1}}));
  EXPECT_EQ(shared.first().tokens, words);
  EXPECT_GT(shared.done->usage.cached_tokens, 0) << "one adapter, one cache";
  std::map<std::string, std::pair<std::optional<std::string>, std::string>> cards;
  for (const AdapterCard& card : engine_->adapters()) cards[card.name] = {card.head, card.question};
  EXPECT_EQ(cards.at("judge"), std::pair(std::optional<std::string>(), std::string("which?")));
  EXPECT_EQ(cards.at("letter"),
            std::pair(std::optional<std::string>("score"), std::string("which letter?")));
  EXPECT_EQ(cards.at("words"), std::pair(std::optional<std::string>(""), std::string("which?")));

  ASSERT_TRUE(unload("judge").ok());
  EXPECT_EQ(tokens_of(with(base_, {{"words", 1}})), words) << "no name needs another";
}

TEST_F(AdapterTest, RefusedNameGivesReason) {
  const auto error_of = [&](const LoadAdapter& request) { return load(request).error(); };
  EXPECT_EQ(error_of({.name = "x", .same_as = "nobody"}).code, ErrorCode::kNotFound);
  EXPECT_EQ(error_of({.name = "two", .same_as = "one"}).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of({.name = "x", .same_as = "one", .head = "nose"}).message,
            "the adapter has no head \"nose\"; its heads: none");
  EXPECT_EQ(error_of({.name = "x", .path = one_.path(), .head = "nose"}).message,
            "the adapter has no head \"nose\"; its heads: none");
  EXPECT_EQ(engine_->adapters().size(), 2);
}

TEST_F(AdapterTest, UnloadingHeadOnlyAdapterKeepsBaseCache) {
  TempDir folder;
  folder.write(
      "adapter_config.json",
      R"({"peft_type": "LORA", "r": 3, "target_modules": ["none"], "modules_to_save": ["score"]})");
  folder.write("adapter_model.safetensors",
               testing::safetensors_text(
                   {{"base_model.model.score.weight",
                     testing::f32_tensor({2, kHidden}, std::vector<float>(2 * kHidden, 1))}}));
  const auto loaded = load("head", folder.path());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  run(base_);
  ASSERT_TRUE(unload("head").ok());
  EXPECT_EQ(run(base_).done->usage.cached_tokens, 32);
}

}  // namespace
}  // namespace valora
