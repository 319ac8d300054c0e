#include "serving/batch/batch_builder.h"

#include <gtest/gtest.h>

#include "text/testing/tiny_tokenizer.h"

namespace valora::serving {
namespace {

using scheduler::StepItem;
using scheduler::StepPlan;

std::shared_ptr<LoadedAdapter> numbered_adapter(adapters::AdapterId id) {
  auto made = std::make_shared<LoadedAdapter>();
  made->id = id;
  made->digest = DigestBuilder().add(static_cast<int64_t>(id)).finish();
  made->on_decoder = true;
  return made;
}

class Batches : public ::testing::Test {
 protected:
  // Tokens 10, 11, … with two position axes, the second counting by tens.
  Sequence& sequence(int prompt, int generated, std::vector<AppliedAdapter> uses,
                     std::vector<models::VisualSpan> visual = {}) {
    auto owner = std::make_shared<ActiveRequest>();
    owner->adapters = std::move(uses);
    owner->language = &language_;
    auto prepared = std::make_shared<PreparedPrompt>();
    for (int i = 0; i < prompt; ++i) prepared->tokens.push_back(10 + i);
    for (int i = 0; i < prompt; ++i) prepared->positions.prompt.push_back(i);
    for (int i = 0; i < prompt; ++i) prepared->positions.prompt.push_back(10 * i);
    prepared->positions.delta = -1;
    for (size_t i = 0; i < visual.size(); ++i)
      prepared->visual_keys.push_back(DigestBuilder().add(static_cast<int64_t>(i)).finish());
    prepared->visual = std::move(visual);
    sequences_.push_back(
        std::make_shared<Sequence>(owner, 0, prepared, text::tiny_tokenizer(), 100));
    Sequence& made = *sequences_.back();
    for (int i = 0; i < generated; ++i) made.tokens.push_back(10 + prompt + i);
    made.table.blocks = {static_cast<memory::BlockId>(sequences_.size())};
    return made;
  }
  static StepItem item(Sequence& s, int computed, int tokens) {
    s.computed_tokens = computed;
    return {.request = &s, .tokens = tokens, .yields = tokens == s.remaining_tokens()};
  }

  const std::shared_ptr<LoadedAdapter> a_ = numbered_adapter(1), b_ = numbered_adapter(2);
  Language language_;  // without thoughts
  std::vector<std::shared_ptr<Sequence>> sequences_;
  BatchBuilder builder_{2};
};

TEST_F(Batches, SequencesFollowEachOtherWithTheirTokensPositionsAndBlocks) {
  Sequence &whole = sequence(3, 0, {}), &part = sequence(5, 0, {}), &decode = sequence(2, 2, {});
  StepPlan plan;
  plan.items = {item(whole, 0, 3), item(part, 1, 2), item(decode, 3, 1)};
  const BatchMessage message = builder_.build(plan);
  const FlatTokens& flat = message.tokens;
  EXPECT_EQ(flat.ids, (std::vector<int64_t>{10, 11, 12, 11, 12, 13}));
  EXPECT_EQ(flat.positions[0], (std::vector<int64_t>{0, 1, 2, 1, 2, 2}));
  EXPECT_EQ(flat.positions[1], (std::vector<int64_t>{0, 10, 20, 10, 20, 2}))
      << "a generated token has the same position on all axes";
  EXPECT_TRUE(flat.rope_lengths.empty());
  ASSERT_EQ(flat.spans.size(), 3u);
  EXPECT_EQ(flat.spans[1].begin, 3);
  EXPECT_EQ(flat.spans[1].queries, 2);
  EXPECT_EQ(flat.spans[1].context, 1);
  EXPECT_EQ(*flat.spans[1].blocks, 2);
  EXPECT_EQ(message.sampled.rows, (std::vector<int64_t>{2, 5})) << "a part of a prompt yields none";
}

TEST_F(Batches, StatesAreReadFromLastStepOrCheckpoint) {
  Sequence &fresh = sequence(40, 0, {}), &found = sequence(40, 0, {}), &decode = sequence(2, 2, {});
  for (Sequence* s : {&fresh, &found, &decode}) s->table.state = {7, 8};
  found.table.start = {3, 4};
  fresh.table.kept = {std::vector<memory::BlockId>{5, 6}, std::vector<memory::BlockId>{9, 10}};
  StepPlan plan;
  plan.items = {item(fresh, 0, 40), item(found, 16, 3), item(decode, 3, 1)};
  plan.items[0].kept = {16, 32};
  const BatchMessage message = builder_.build(plan);
  const auto& states = message.tokens.states;
  ASSERT_EQ(states.size(), 3u);
  EXPECT_EQ(states[0].from, nullptr);
  EXPECT_EQ(states[0].to, fresh.table.state.data());
  EXPECT_EQ(states[0].kept[1].blocks, fresh.table.kept[1].data());
  EXPECT_EQ(states[0].kept[0].after, 16);
  EXPECT_EQ(states[0].kept[1].after, 32);
  EXPECT_EQ(states[1].from, found.table.start.data());
  EXPECT_EQ(states[1].to, found.table.state.data());
  EXPECT_EQ(states[1].kept[0].blocks, nullptr);
  EXPECT_EQ(states[2].from, decode.table.state.data());
}

TEST_F(Batches, RowsTakeMatchingPictureEmbeddings) {
  // Two pictures of 4 and 3 tokens; text splits the second one.
  Sequence& s = sequence(12, 0, {}, {{1, 4, nullptr, 0}, {6, 2, nullptr, 0}, {9, 1, nullptr, 2}});
  StepPlan plan;
  plan.items = {item(s, 3, 7)};
  const BatchMessage message = builder_.build(plan);
  ASSERT_EQ(message.visual.size(), 3u);
  const auto expect = [&](int use, int64_t token, int64_t first_row, int64_t rows) {
    EXPECT_EQ(message.visual[use].token, token) << use;
    EXPECT_EQ(message.visual[use].first_row, first_row) << use;
    EXPECT_EQ(message.visual[use].rows, rows) << use;
  };
  expect(0, 0, 2, 2);
  expect(1, 3, 0, 2);
  expect(2, 6, 2, 1);
}

TEST_F(Batches, MergedAdapterStaysUntilPlanChangesIt) {
  Sequence &one = sequence(2, 0, {{a_, 1}}), &two = sequence(2, 0, {{b_, 0.5f}});
  StepPlan plan;
  plan.mode = scheduler::Mode::kMixture;
  plan.merged = a_->id;
  plan.items = {item(one, 0, 2), item(two, 0, 2)};
  BatchMessage message = builder_.build(plan);
  EXPECT_EQ(message.merged, a_);
  EXPECT_EQ(message.difference,
            (std::vector<AdapterRows>{{2, 4, b_.get(), 0.5f}, {2, 4, a_.get(), -1}}));
  EXPECT_EQ(message.sampled.adapters,
            (std::vector<AdapterRows>{{0, 1, a_.get(), 1}, {1, 2, b_.get(), 0.5f}}))
      << "by place among the scored rows";

  plan.items = {item(two, 0, 2)};
  EXPECT_EQ(builder_.build(plan).merged, a_) << "none of its requests is in the step";
  builder_.forget_merged();
  message = builder_.build(plan);
  EXPECT_EQ(message.merged, nullptr) << "all of its requests failed: the base model's weights";
  EXPECT_EQ(message.difference, (std::vector<AdapterRows>{{0, 2, b_.get(), 0.5f}}));

  plan.items = {item(one, 0, 2)};
  EXPECT_EQ(builder_.build(plan).merged, a_);
  plan.merged = scheduler::kBaseModel;
  EXPECT_EQ(builder_.build(plan).merged, nullptr);
}

TEST_F(Batches, RowsBeforeInvocationUseBaseModel) {
  Sequence& late = sequence(6, 0, {{a_, 2}});
  auto prompt = std::make_shared<PreparedPrompt>(*late.prompt);
  prompt->acts_from = 4;
  late.prompt = prompt;
  Sequence& merging = sequence(2, 0, {{b_, 1}});
  StepPlan plan;
  plan.items = {item(late, 1, 5), item(merging, 0, 2)};
  plan.merged = b_->id;
  const BatchMessage message = builder_.build(plan);
  EXPECT_EQ(message.uses, (std::vector<AdapterRows>{{3, 5, a_.get(), 2}, {5, 7, b_.get(), 1}}));
  EXPECT_EQ(
      message.difference,
      (std::vector<AdapterRows>{{0, 3, b_.get(), -1}, {3, 5, a_.get(), 2}, {3, 5, b_.get(), -1}}));
  EXPECT_EQ(message.sampled.adapters,
            (std::vector<AdapterRows>{{0, 1, a_.get(), 2}, {1, 2, b_.get(), 1}}));
  plan.items = {item(late, 0, 3)};
  EXPECT_TRUE(builder_.build(plan).uses.empty());
}

}  // namespace
}  // namespace valora::serving
