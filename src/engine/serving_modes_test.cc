// Merged and mixture modes in an engine with a tiny model: answers equal those of unmerged serving.
#include <gmock/gmock.h>

#include "engine/testing/engine_fixture.h"
#include "scheduler/costs/cost_file.h"
#include "scheduler/policies/policy.h"

namespace valora {
namespace {

using namespace testing;

struct ModeSetting {
  std::string policy;
  MergePlace merge;
};

class ModeEngine : public TwoAdapterTest {
 protected:
  void start_in(const std::string& policy, MergePlace merge = MergePlace::kShadow) {
    changes_ = {};
    options_.merge = merge;
    if (policy == "valora") make_merging_profitable();
    options_.scheduling.policy = policy;
    start_with_adapters();
  }
  // Costs that make valora change its mode constantly.
  void make_merging_profitable() {
    options_.scheduling = {};
    start();
    const serving::CostKey key = engine_->cost_key();
    engine_.reset();
    changes_.policy = [] {
      return scheduler::make_policy("valora",
                                    {.tolerance = std::chrono::seconds(1), .merged_share = 0})
          .value();
    };
    options_.scheduling.costs = costs_.file("costs.json");
    const scheduler::StepCosts costs{
        .step = 1e-3, .decode_token = 1e-5, .rank = 1e-2, .token_rank = 1e-6, .merge = 1e-6};
    ASSERT_TRUE(scheduler::write_cost_file(options_.scheduling.costs,
                                           {key.machine, key.model, {.costs = costs, .steps = 1}})
                    .ok());
  }
  std::vector<std::vector<int32_t>> answers_to(const std::vector<GenerateRequest>& requests) {
    std::vector<std::shared_ptr<WaitingSink>> sinks;
    for (const auto& request : requests) sinks.push_back(submit(request));
    std::vector<std::vector<int32_t>> tokens;
    for (const auto& sink : sinks) tokens.push_back(sink->wait().first().tokens);
    return tokens;
  }
  TempDir costs_;
  const std::vector<GenerateRequest> requests_{base_,
                                               with(base_, {{"one", 1}}),
                                               with(base_, {{"two", 1}}),
                                               with(base_, {{"one", 0.5f}}),
                                               with(base_, {{"two", 1}, {"one", -1}}),
                                               with(base_, {{"one", 0}}),
                                               with(base_, {{"one", 1}}),
                                               with(base_, {{"one", 1}}),
                                               with(base_, {{"one", 1}}),
                                               with(base_, {{"one", 1}}),
                                               with(base_, {{"one", 1}})};
};

class ModeTest : public ModeEngine, public ::testing::WithParamInterface<ModeSetting> {};

INSTANTIATE_TEST_SUITE_P(Modes, ModeTest,
                         ::testing::Values(ModeSetting{"merged", MergePlace::kShadow},
                                           ModeSetting{"merged", MergePlace::kInPlace},
                                           ModeSetting{"mixture", MergePlace::kShadow},
                                           ModeSetting{"mixture", MergePlace::kInPlace},
                                           ModeSetting{"valora", MergePlace::kShadow},
                                           ModeSetting{"valora", MergePlace::kInPlace}),
                         [](const auto& info) {
                           return info.param.policy + "_" + name_of(info.param.merge);
                         });

TEST_P(ModeTest, AnswersEqualUnmergedServing) {
  start_in("unmerged");
  const auto expected = answers_to(requests_);
  EXPECT_EQ(engine_->stats().merges, 0);
  engine_.reset();
  start_in(GetParam().policy, GetParam().merge);
  for (int round = 0; round < 3; ++round) EXPECT_EQ(answers_to(requests_), expected) << round;
  drain();
  const EngineStats stats = engine_->stats();
  EXPECT_GT(stats.merges, 0);
  EXPECT_GE(stats.mode_switches, stats.merges);
  EXPECT_GT(stats.merge_seconds, 0);
}

TEST_P(ModeTest, ForgettingMergedWeightsRestoresBaseAndRemerges) {
  const auto adapted = with(base_, {{"one", 1}});
  const std::vector<GenerateRequest> all_adapted(6, adapted);
  start_in("unmerged");
  const auto base = tokens_of(base_);
  const auto one = answers_to(all_adapted);
  engine_.reset();
  start_in(GetParam().policy, GetParam().merge);
  EXPECT_EQ(answers_to(all_adapted), one);
  EXPECT_EQ(engine_->check(), "");  // waits for the last step
  const uint64_t merges = engine_->stats().merges;
  ASSERT_GT(merges, 0u);
  engine_->forget_merged();
  EXPECT_EQ(engine_->check(), "");
  EXPECT_EQ(tokens_of(base_), base);
  EXPECT_EQ(engine_->check(), "");
  EXPECT_EQ(engine_->stats().merges, merges);
  EXPECT_EQ(answers_to(all_adapted), one);
  EXPECT_EQ(engine_->check(), "");
  EXPECT_GT(engine_->stats().merges, merges);
}

TEST_P(ModeTest, ReloadWhileMergedUsesNewContent) {
  start_in("unmerged");
  const auto old_one = tokens_of(with(base_, {{"one", 1}})),
             two = tokens_of(with(base_, {{"two", 1}}));
  const auto base = tokens_of(base_);
  engine_.reset();
  start_in(GetParam().policy, GetParam().merge);
  Gate gate;
  const auto running = gated_sink(gate, 2);
  submit(with(base_, {{"one", 1}}), running);
  gate.wait_for_arrival();
  ASSERT_TRUE(load("one", two_.path(), true).ok());
  const auto fresh = submit(with(base_, {{"one", 1}})), plain = submit(base_);
  gate.open();
  EXPECT_EQ(running->wait().first().tokens, old_one);
  EXPECT_EQ(fresh->wait().first().tokens, two);
  EXPECT_EQ(plain->wait().first().tokens, base);
  ASSERT_TRUE(unload("one").ok());
  EXPECT_EQ(tokens_of(base_), base);
  EXPECT_EQ(tokens_of(with(base_, {{"two", 1}})), two);
}

// If it were merged, its infinities would reach every request.
TEST_P(ModeTest, OverflowingAdapterAffectsNoOtherRequest) {
  TempDir huge;
  write_overflowing_adapter(huge);
  start_in(GetParam().policy, GetParam().merge);
  ASSERT_TRUE(load("huge", huge.path()).ok());
  const auto base = tokens_of(base_), one = tokens_of(with(base_, {{"one", 1}}));
  const auto bad = submit(with(base_, {{"huge", 1}})), again = submit(with(base_, {{"huge", 1}}));
  const auto plain = submit(base_), adapted = submit(with(base_, {{"one", 1}}));
  EXPECT_TRUE(bad->wait().error);
  EXPECT_TRUE(again->wait().error);
  EXPECT_EQ(plain->wait().first().tokens, base);
  EXPECT_EQ(adapted->wait().first().tokens, one);
}

// In 16 bits: whatever one adapter's values are, others are answered as without it.
class IsolationTest : public ModeEngine, public ::testing::WithParamInterface<ModeSetting> {
 protected:
  IsolationTest() { options_.dtype = ComputeDtype::kBFloat16; }
  // Of rank 1 on all linears that tiny adapters target, with D of this root mean square.
  static void write_flooder(const TempDir& dir, float size) {
    std::map<std::string, RawTensor> tensors;
    const auto add = [&](const std::string& module, int64_t in, int64_t out) {
      const std::string name = "base_model.model.model.layers." + module;
      tensors[name + ".lora_A.weight"] = f32_tensor({1, in}, std::vector<float>(in, 1));
      tensors[name + ".lora_B.weight"] = f32_tensor({out, 1}, std::vector<float>(out, size));
    };
    for (const std::string layer : {"0", "1"}) {
      add(layer + ".self_attn.q_proj", kHidden, kHeads * kHeadDim);
      add(layer + ".mlp.down_proj", kInner, kHidden);
    }
    dir.write("adapter_config.json",
              R"({"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules":)"
              R"( ["q_proj", "down_proj"]})");
    dir.write("adapter_model.safetensors", safetensors_text(tensors));
  }
  struct Answered {
    std::vector<int32_t> tokens;
    std::vector<float> logprobs;
  };
  // Log probabilities differ by the order of sums, which the number of rows in a step decides.
  static void expect_equal(const std::vector<Answered>& got, const std::vector<Answered>& expected,
                           float size) {
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(got[i].tokens, expected[i].tokens) << "request " << i << " size " << size;
      EXPECT_THAT(got[i].logprobs,
                  ::testing::Pointwise(::testing::FloatNear(1e-3F), expected[i].logprobs))
          << "request " << i << " size " << size;
    }
  }
  std::vector<Answered> answers_of_others(int flood) {
    std::vector<std::shared_ptr<WaitingSink>> flooders, others;
    for (int i = 0; i < flood; ++i) flooders.push_back(submit(with(base_, {{"flood", 1}})));
    std::vector<GenerateRequest> requests{base_, with(base_, {{"one", 0.75f}}),
                                          with(base_, {{"one", 0.5f}, {"two", -1}})};
    for (GenerateRequest& request : requests) {
      request.sampling.logprobs = 0;
      others.push_back(submit(request));
    }
    std::vector<Answered> answers;
    for (const auto& sink : others) {
      const auto answer = sink->wait().first();
      answers.push_back({answer.tokens, answer.logprobs});
    }
    for (const auto& sink : flooders) EXPECT_FALSE(sink->wait().error);
    return answers;
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, IsolationTest,
                         ::testing::Values(ModeSetting{"merged", MergePlace::kShadow},
                                           ModeSetting{"mixture", MergePlace::kShadow},
                                           ModeSetting{"mixture", MergePlace::kInPlace},
                                           ModeSetting{"valora", MergePlace::kShadow},
                                           ModeSetting{"valora", MergePlace::kInPlace}),
                         [](const auto& info) {
                           return info.param.policy + "_" + name_of(info.param.merge);
                         });

TEST_P(IsolationTest, AMergedAdapterChangesNoAnswerOfOthers) {
  start_in("unmerged");
  const auto expected = answers_of_others(0);
  EXPECT_NE(expected[0].logprobs.at(0), 0) << "without log probabilities";
  engine_.reset();
  for (const float size : {1e-3f, 0.1f, 1.0f, 15.9f}) {
    TempDir flooder;
    write_flooder(flooder, size);
    start_in(GetParam().policy, GetParam().merge);
    ASSERT_TRUE(load("flood", flooder.path()).ok());
    expect_equal(answers_of_others(0), expected, size);
    EXPECT_FALSE(submit(with(base_, {{"flood", 1}}))->wait().error);
    for (int round = 0; round < 3; ++round) expect_equal(answers_of_others(6), expected, size);
    drain();
    EXPECT_GT(engine_->stats().merges, 0) << size;
    engine_.reset();
  }
}

TEST_F(ModeEngine, ReportsModeOfLastStep) {
  start_in("mixture");
  tokens_of(with(base_, {{"two", 1}, {"one", 1}}));  // one is merged, the other applied on top
  EXPECT_EQ(engine_->stats().mode, "mixture");
  tokens_of(with(base_, {{"one", 1}}));
  EXPECT_EQ(engine_->stats().mode, "merged");
  tokens_of(base_);
  EXPECT_EQ(engine_->stats().mode, "unmerged");
}

}  // namespace
}  // namespace valora
