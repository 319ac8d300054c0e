#include "adapters/folder/lora_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/json/json.h"
#include "base/testing/temp_dir.h"

namespace valora::adapters {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoraConfigTest : public ::testing::Test {
 protected:
  Result<LoraConfig> read(const std::string& text) {
    dir_.write("adapter_config.json", text);
    return read_lora_config(*InputFolder::open(dir_.path()));
  }
  // A valid configuration with one key set.
  Result<LoraConfig> with(const std::string& key, const Json& value) {
    Json config = {{"peft_type", "LORA"}, {"target_modules", {"q_proj"}}};
    config[key] = value;
    return read(config.dump());
  }

  valora::testing::TempDir dir_;
  RegexBudget budget_;
};

TEST_F(LoraConfigTest, DefaultsMatchPeft) {
  const auto config = read(R"({"peft_type":"LORA","target_modules":["q_proj"]})");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->rules.rank, 8);
  EXPECT_EQ(config->rules.alpha, 8);
  EXPECT_FALSE(config->rules.rslora);
  EXPECT_TRUE(config->warnings.empty());
}

TEST_F(LoraConfigTest, OptionsThatChangeResultsAreRefusedByName) {
  const std::vector<std::pair<std::string, Json>> refused = {
      {"bias", "some"},
      {"monteclora_config", {{"num_samples", 2}}},
      {"layer_replication", {{0, 2}}},
      {"trainable_token_indices", {3, -1}},
      {"trainable_token_indices", {{"embed_tokens", {3, 4, 3}}}},
      {"trainable_token_indices", {int64_t{1} << 32}},
      {"alora_invocation_tokens", Json::array()},
      {"use_qalora", true},
      {"arrow_config", {{"top_k", 3}}},
      {"use_bdlora", {{"nblocks", 0}}},
      {"use_bdlora", {{"new_option", 2}}},
      {"kasa_config", {{"beta", 1}}},
      {"enable_lora", {true, false, true}},
      {"init_lora_weights", "pissa"},
      {"init_lora_weights", "pissa_niter_4"},
      {"init_lora_weights", "olora"},
      {"init_lora_weights", "corda"},
      {"init_lora_weights", "loftq"},
      {"init_lora_weights", "new_kind"},
      {"peft_type", "IA3"}};
  for (const auto& [key, value] : refused) {
    const auto config = with(key, value);
    ASSERT_FALSE(config.ok()) << key << value;
    EXPECT_EQ(config.error().code, ErrorCode::kUnprocessable) << key;
    EXPECT_EQ(config.error().param, key);
    EXPECT_THAT(config.error().message, HasSubstr("adapter_config.json: " + key));
  }
}

TEST_F(LoraConfigTest, OptionsAtTheirDefaultsOrWithoutEffectAreAccepted) {
  const auto config =
      read(R"({"peft_type":"LORA","target_modules":["q_proj"],"use_dora":false,"lora_bias":false,
    "bias":"none","target_parameters":null,"layer_replication":null,"trainable_token_indices":null,
    "alora_invocation_tokens":null,"use_qalora":false,"megatron_config":null,"megatron_core":"megatron.core",
    "arrow_config":null,"fan_in_fan_out":false,"init_lora_weights":true,"loftq_config":{},"eva_config":null,
    "corda_config":null,"qalora_group_size":16,"lora_dropout":0.1,"inference_mode":true,"revision":"x",
    "task_type":"CAUSAL_LM","base_model_name_or_path":"b","auto_mapping":null,"peft_version":"0.18.0",
    "ensure_weight_tying":false,"layers_pattern":null,"layers_to_transform":null,"rank_pattern":{},
    "alpha_pattern":{},"exclude_modules":null,"modules_to_save":null,"r":4,"lora_alpha":1.5,"use_rslora":true})");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_TRUE(config->warnings.empty());
  for (const char* kind : {"gaussian", "eva", "orthogonal", "mica"})
    EXPECT_TRUE(with("init_lora_weights", kind).ok()) << kind;
}

// Keys that trainers add, and training options that PEFT ignores here, too.
TEST_F(LoraConfigTest, TrainerOptionsWithoutEffectDoNotWarn) {
  const std::vector<std::pair<std::string, Json>> accepted = {
      {"lora_dtype", "bfloat16"},      {"lorap_lr_ratio", 2.5},
      {"lorap_emb_lr", 1e-6},          {"unsloth_fixed", true},
      {"merge_weights", true},         {"fan_in_fan_out", true},
      {"megatron_config", {{"a", 1}}}, {"lora_ga_config", {{"a", 1}}},
      {"velora_config", {{"a", 1}}}};
  for (const auto& [key, value] : accepted) {
    const auto config = with(key, value);
    ASSERT_TRUE(config.ok()) << key << config.error().message;
    EXPECT_TRUE(config->warnings.empty()) << key;
  }
}

TEST_F(LoraConfigTest, ReadsWholeValueOptions) {
  const auto plain = with("bias", "none");
  EXPECT_FALSE(plain->lora_bias || plain->trained_biases || plain->ensure_weight_tying);
  EXPECT_TRUE(with("lora_bias", true)->lora_bias);
  EXPECT_TRUE(with("use_dora", true)->dora && !plain->dora);
  EXPECT_TRUE(with("bias", "all")->trained_biases && with("bias", "lora_only")->trained_biases);
  EXPECT_TRUE(with("ensure_weight_tying", true)->ensure_weight_tying);
  const auto list = with("trainable_token_indices", {7, 3});
  ASSERT_EQ(list->token_ids.size(), 1u);
  EXPECT_EQ(list->token_ids[0].module, "") << "the embedding, whatever its name";
  EXPECT_THAT(list->token_ids[0].ids, ElementsAre(7, 3));
  const auto named =
      with("trainable_token_indices", {{"lm_head", {5}}, {"embed_tokens", Json::array()}});
  ASSERT_EQ(named->token_ids.size(), 1u);
  EXPECT_EQ(named->token_ids[0].module, "lm_head");
  EXPECT_FALSE(with("trainable_token_indices", "embed_tokens").ok());
}

TEST_F(LoraConfigTest, UnknownKeysWarnIfSet) {
  const auto config = with("use_tomorrows_trick", true);
  ASSERT_TRUE(config.ok());
  EXPECT_THAT(config->warnings, ElementsAre(HasSubstr("\"use_tomorrows_trick\" is unknown")));
  // Newer versions of PEFT write the options of all their methods, even unused ones.
  for (const Json& unset : {Json(), Json(false), Json::object()})
    EXPECT_TRUE(with("use_tomorrows_trick", unset)->warnings.empty()) << unset.dump();
}

TEST_F(LoraConfigTest, WrongTypesAreErrors) {
  const std::vector<std::pair<std::string, Json>> wrong = {
      {"r", "8"},
      {"r", 2.5},
      {"r", 1e12},
      {"lora_alpha", "x"},
      {"use_rslora", 1},
      {"target_modules", 3},
      {"target_modules", {1}},
      {"exclude_modules", {{"a", 1}}},
      {"modules_to_save", {1}},
      {"layers_to_transform", "1"},
      {"layers_to_transform", {0.5}},
      {"layers_to_transform", {UINT64_MAX}},
      {"trainable_token_indices", {UINT64_MAX}},
      {"rank_pattern", {1}},
      {"rank_pattern", {{"q_proj", "4"}}},
      {"rank_pattern", {{"q_proj", nullptr}}},
      {"alpha_pattern", {{"q", {1}}}},
      {"peft_type", 1}};
  for (const auto& [key, value] : wrong) {
    const auto config = with(key, value);
    ASSERT_FALSE(config.ok()) << key << value;
    EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument) << key << value;
  }
  EXPECT_FALSE(read("[]").ok());
  EXPECT_FALSE(read("{").ok());
  EXPECT_FALSE(read(R"({"peft_type":"LORA"})").ok());
  EXPECT_FALSE(read(R"({"target_modules":["q_proj"]})").ok());
}

// 2^32 + 5 must not be read as 5.
TEST_F(LoraConfigTest, InvocationTokensOutsideAnyVocabularyAreRefused) {
  constexpr int64_t kWraps = (int64_t{1} << 32) + 5;
  for (const Json& token : {Json(kWraps), Json(-1), Json(UINT64_MAX), Json(int64_t{1} << 31)}) {
    const auto config = with("alora_invocation_tokens", {3, token});
    ASSERT_FALSE(config.ok()) << token;
    EXPECT_EQ(config.error().param, "alora_invocation_tokens");
    EXPECT_THAT(config.error().message,
                HasSubstr("has " + token.dump() + ", which is no token of any vocabulary"));
  }
  EXPECT_EQ(with("alora_invocation_tokens", {3, INT32_MAX})->invocation.back(), INT32_MAX);
}

TEST_F(LoraConfigTest, InvalidPatternsAreRefused) {
  for (const char* key : {"target_modules", "exclude_modules"}) {
    const auto config = with(key, "a(b");
    ASSERT_FALSE(config.ok());
    EXPECT_EQ(config.error().param, key);
    EXPECT_THAT(config.error().message, HasSubstr("the regular expression \"a(b\" is refused"));
  }
  EXPECT_FALSE(with("rank_pattern", {{"a(b", 1}}).ok());
  EXPECT_FALSE(with("modules_to_save", {"a(b"}).ok());
}

TEST_F(LoraConfigTest, LayerOptionsRequireEachOtherAndAList) {
  EXPECT_FALSE(with("layers_pattern", "layers").ok());
  EXPECT_TRUE(with("layers_pattern", "").ok());
  EXPECT_FALSE(
      read(R"({"peft_type":"LORA","target_modules":".*q","layers_to_transform":[0]})").ok());
}

TEST_F(LoraConfigTest, TheFirstPatternOfTheFileWins) {
  const std::string start = R"({"peft_type":"LORA","target_modules":["q_proj"],"rank_pattern":)";
  const auto forward = read(start + R"({"z.q_proj":2,"q_proj":3}})");
  const auto backward = read(start + R"({"q_proj":3,"z.q_proj":2}})");
  ASSERT_TRUE(forward.ok() && backward.ok());
  EXPECT_EQ(*forward->rules.rank_of("z.q_proj", budget_), 2);
  EXPECT_EQ(*backward->rules.rank_of("z.q_proj", budget_), 3);
  // A repeated key keeps its first position and last value, as in a Python dictionary.
  const auto repeated = read(start + R"({"q_proj":3,"z.q_proj":2,"q_proj":4}})");
  ASSERT_TRUE(repeated.ok());
  EXPECT_EQ(*repeated->rules.rank_of("z.q_proj", budget_), 4);
}

TEST_F(LoraConfigTest, TooManyPatternsAreRefused) {
  Json plain = Json::object(), regexes = Json::object();
  for (int i = 0; i < 300; ++i) {
    plain["layers." + std::to_string(i)] = 1;
    regexes["a+" + std::to_string(i)] = 1;
  }
  EXPECT_TRUE(with("rank_pattern", plain).ok());
  EXPECT_THAT(with("rank_pattern", regexes).error().message,
              HasSubstr("more than 128 regular expressions"));
}

// Each "(?i)[…]" like this takes milliseconds to compile, so megabytes of them would take hours.
TEST_F(LoraConfigTest, LongRegularExpressionsAreRefused) {
  std::string classes = "(?i)";
  for (int i = 0; i < 500; ++i) classes += "[\\x{0}-\\x{10ffff}]";
  const std::string half = std::string(5000, 'a');
  for (const auto& [key, value] : std::map<std::string, Json>{{"target_modules", classes},
                                                              {"exclude_modules", classes},
                                                              {"modules_to_save", {half, half}},
                                                              {"rank_pattern", {{classes, 1}}}}) {
    const auto config = with(key, value);
    ASSERT_FALSE(config.ok()) << key;
    EXPECT_THAT(config.error().message,
                HasSubstr(key + " has more than 8192 bytes of regular expressions"));
  }
}

}  // namespace
}  // namespace valora::adapters
