#include "serving/sampling/generation_config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/testing/temp_dir.h"

namespace valora::serving {
namespace {

class GenerationConfigTest : public ::testing::Test {
 protected:
  Result<GenerationConfig> read(const std::string& file, const Json& model = Json::object()) {
    if (!file.empty()) dir_.write("generation_config.json", file);
    return read_generation_config(dir_.path(), model);
  }
  valora::testing::TempDir dir_;
};

TEST_F(GenerationConfigTest, FilePrecedesModelThenTextConfig) {
  EXPECT_EQ(read("", {{"eos_token_id", 7}})->eos_token_ids, std::vector<int32_t>{7});
  EXPECT_EQ(read("", {{"text_config", {{"eos_token_id", {8, 9}}}}})->eos_token_ids,
            (std::vector<int32_t>{8, 9}));
  EXPECT_TRUE(read("")->eos_token_ids.empty());
  EXPECT_EQ(read(R"({"eos_token_id": [5, 6]})", {{"eos_token_id", 7}})->eos_token_ids,
            (std::vector<int32_t>{5, 6}));
  EXPECT_EQ(read(R"({"eos_token_id": null})", {{"eos_token_id", 7}})->eos_token_ids,
            std::vector<int32_t>{7});
}

TEST_F(GenerationConfigTest, ReadsTheDefaultsOfAModel) {
  const auto config = read(
      R"({"do_sample": true, "temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1.05})");
  EXPECT_EQ(config->temperature, 0.7);
  EXPECT_EQ(config->top_p, 0.8);
  EXPECT_EQ(config->top_k, 20);
  EXPECT_EQ(config->repetition_penalty, 1.05);
  EXPECT_EQ(read(R"({"do_sample": false, "temperature": 0.7})")->temperature, 0);
  EXPECT_EQ(read(R"({"temperature": null, "top_k": null})")->temperature, 1);
}

TEST_F(GenerationConfigTest, RefusesInvalidDefaults) {
  for (const char* file :
       {"[]", "{", R"({"eos_token_id": "x"})", R"({"eos_token_id": -1})",
        R"({"eos_token_id": [1, 4294967296]})", R"({"temperature": "hot"})", R"({"top_p": -0.1})",
        R"({"temperature": -1})", R"({"repetition_penalty": 0})"})
    EXPECT_FALSE(read(file).ok()) << file;
}

TEST_F(GenerationConfigTest, OverridesPrecedeFile) {
  dir_.write("generation_config.json",
             R"({"do_sample": false, "top_k": 20, "top_p": 0.8, "eos_token_id": 5})");
  const auto with = [&](const std::string& overrides) {
    return read_generation_config(dir_.path(), Json::object(), {}, overrides);
  };
  const auto changed = with(R"({"temperature": 0.5, "top_k": 3, "eos_token_id": [6, 7]})");
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  EXPECT_EQ(changed->temperature, 0.5);
  EXPECT_EQ(changed->top_k, 3);
  EXPECT_EQ(changed->top_p, 0.8);
  EXPECT_EQ(changed->eos_token_ids, (std::vector<int32_t>{6, 7}));
  EXPECT_EQ(with("")->temperature, 0);
  for (const char* wrong :
       {"[1]", "{", R"({"top_q": 1})", R"({"top_p": 2})", R"({"temperature": "hot"})"})
    EXPECT_FALSE(with(wrong).ok()) << wrong;
}

TEST(SettleSampling, FillsInWhatIsAbsent) {
  const GenerationConfig defaults{{}, 0.7, 0.8, 20, 1.05};
  const auto settled = resolve_sampling({}, defaults, 20, 99);
  EXPECT_EQ(settled->temperature, 0.7);
  EXPECT_EQ(settled->top_p, 0.8);
  EXPECT_EQ(settled->top_k, 20);
  EXPECT_EQ(settled->repetition_penalty, 1.05);
  EXPECT_EQ(settled->seed, 99);
  EXPECT_EQ(settled->top_logprobs, -1);
  SamplingParams params;
  params.temperature = 1e-7;
  params.top_k = -1;
  params.seed = -3;
  params.logprobs = 0;
  const auto own = resolve_sampling(params, defaults, 20, 99);
  EXPECT_EQ(own->temperature, 0);
  EXPECT_EQ(own->top_k, 0);
  EXPECT_EQ(own->seed, static_cast<uint64_t>(-3));
  EXPECT_EQ(own->top_logprobs, 0);
}

TEST(SettleSampling, RefusalNamesField) {
  const auto refused = [](const std::string& field, auto&& change) {
    SamplingParams params;
    change(params);
    const auto settled = resolve_sampling(params, {}, 20, 0);
    ASSERT_FALSE(settled.ok()) << field;
    EXPECT_EQ(settled.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(settled.error().param, field);
  };
  refused("temperature", [](auto& p) { p.temperature = -0.1; });
  refused("temperature", [](auto& p) { p.temperature = NAN; });
  refused("temperature", [](auto& p) { p.temperature = INFINITY; });
  refused("top_p", [](auto& p) { p.top_p = -0.01; });
  refused("top_p", [](auto& p) { p.top_p = 1.01; });
  refused("top_k", [](auto& p) { p.top_k = -2; });
  refused("min_p", [](auto& p) { p.min_p = 1.5; });
  refused("repetition_penalty", [](auto& p) { p.repetition_penalty = 0; });
  refused("presence_penalty", [](auto& p) { p.presence_penalty = 2.1; });
  refused("frequency_penalty", [](auto& p) { p.frequency_penalty = NAN; });
  refused("logit_bias", [](auto& p) { p.logit_bias = {{1, NAN}}; });
  refused("logprobs", [](auto& p) { p.logprobs = 21; });
  refused("n", [](auto& p) { p.n = 0; });
  refused("max_tokens", [](auto& p) { p.max_tokens = -1; });
  refused("min_tokens", [](auto& p) { p.min_tokens = -1; });
  refused("min_tokens", [](auto& p) { p.max_tokens = 3, p.min_tokens = 4; });
}

}  // namespace
}  // namespace valora::serving
