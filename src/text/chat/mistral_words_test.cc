// tests/parity/test_tokenizer_folders.py compares the tokens with transformers'.
#include "text/chat/mistral_words.h"

#include <gmock/gmock.h>

#include "base/testing/temp_dir.h"
#include "text/testing/tiny_tokenizer.h"
#include "text/word_patterns.h"

namespace valora::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using valora::testing::TempDir;

const Json kStep = {{"type", "Split"},
                    {"pattern", {{"Regex", kTekkenWords}}},
                    {"behavior", "Isolated"},
                    {"invert", false}};

class MistralWords : public ::testing::Test {
 protected:
  MistralWords() {
    tokenizer_ = tiny_tokenizer_json();
    Json& vocab = tokenizer_["model"]["vocab"];
    for (int id = 1000; vocab.size() < 99'999; ++id) vocab["filler" + std::to_string(id)] = id;
    config_ = {{"model_type", "mistral3"}, {"transformers_version", "4.57.3"}};
    settings_ = {{"fix_mistral_regex", true}};
  }
  // The pre-tokenizer after mending; a text if that is refused.
  Json mended() {
    if (!config_.is_null()) dir_.write("config.json", config_.dump());
    dir_.write("tokenizer_config.json", settings_.dump());
    Json tokenizer = tokenizer_;
    const Status done = mend_mistral_words(*InputFolder::open(dir_.path()), tokenizer);
    return done.ok() ? tokenizer["pre_tokenizer"] : Json(done.error().message);
  }
  bool changes() { return mended() != tokenizer_["pre_tokenizer"]; }

  TempDir dir_;
  Json tokenizer_, config_, settings_;
};

TEST_F(MistralWords, FirstStepOfASequenceIsReplaced) {
  const Json bytes = tokenizer_["pre_tokenizer"];
  tokenizer_["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       Json::array({Json{{"type", "Split"}, {"pattern", {{"Regex", "x"}}}}, bytes})}};
  EXPECT_EQ(mended()["pretokenizers"], Json::array({kStep, bytes}));
  tokenizer_["pre_tokenizer"]["pretokenizers"] = Json::array();
  EXPECT_THAT(mended().get<std::string>(), HasSubstr("tokenizer_config.json: fix_mistral_regex"));
}

TEST_F(MistralWords, AnotherPreTokenizerBecomesTheSecondStep) {
  const Json bytes = tokenizer_["pre_tokenizer"];
  EXPECT_EQ(mended(), (Json{{"type", "Sequence"}, {"pretokenizers", Json::array({kStep, bytes})}}));
  tokenizer_["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "_"}, {"split", false}};
  const Json second = mended()["pretokenizers"][1];
  EXPECT_EQ(second["type"], "ByteLevel");
  EXPECT_EQ(second["use_regex"], false);
  tokenizer_["pre_tokenizer"] = nullptr;
  EXPECT_FALSE(changes());
}

TEST_F(MistralWords, OnlyWhereTheKeyAsksForIt) {
  EXPECT_TRUE(changes());
  for (const Json& value : {Json(false), Json(nullptr)}) {
    settings_["fix_mistral_regex"] = value;
    EXPECT_FALSE(changes()) << value;
  }
  settings_["fix_mistral_regex"] = "yes";
  EXPECT_THAT(mended().get<std::string>(), HasSubstr("fix_mistral_regex"));
  settings_ = Json::object();
  EXPECT_FALSE(changes());
}

TEST_F(MistralWords, OnlyForOlderFoldersOfTheFamily) {
  for (const char* type : {"mistral", "voxtral", "ministral", "pixtral"}) {
    config_["model_type"] = type;
    EXPECT_TRUE(changes()) << type;
  }
  for (const char* version : {"4.9", "5.0.0.dev0", "5.0.0rc1", "v4.58.0.dev0", "4"}) {
    config_["transformers_version"] = version;
    EXPECT_TRUE(changes()) << version;
  }
  for (const char* version : {"5.0.0", "5", "5.0.0.post1", "5.24.0", "10.1"}) {
    config_["transformers_version"] = version;
    EXPECT_FALSE(changes()) << version;
  }
  config_["transformers_version"] = "soon";
  EXPECT_THAT(mended().get<std::string>(), HasSubstr("transformers_version \"soon\""));
  config_ = {{"model_type", "qwen2"}};
  EXPECT_FALSE(changes());
  config_ = Json::object();
  EXPECT_TRUE(changes()) << "neither a version nor a family";
}

TEST_F(MistralWords, AdaptersWithoutConfigAreLeftAlone) {
  config_ = nullptr;
  EXPECT_FALSE(changes());
}

// 99,999 in the vocabulary and two added tokens are 100,001.
TEST_F(MistralWords, OnlyForLargeVocabularies) {
  EXPECT_TRUE(changes());
  tokenizer_["added_tokens"].erase(1);
  EXPECT_FALSE(changes());
}

TEST_F(MistralWords, LoadedTokenizerSplitsWordsWhereCaseChanges) {
  tokenizer_["model"]["vocab"]["aB"] = 900;
  tokenizer_["model"]["merges"].push_back("a B");
  dir_.write("config.json", config_.dump());
  dir_.write("tokenizer.json", tokenizer_.dump());
  const auto tokens = [&] {
    const auto tokenizer = Tokenizer::load(dir_.path());
    EXPECT_TRUE(tokenizer.ok());
    return (*tokenizer)->encode("aB", false);
  };
  EXPECT_THAT(tokens(), ElementsAre(900));
  dir_.write("tokenizer_config.json", settings_.dump());
  EXPECT_THAT(tokens(), ElementsAre('a', 'B'));
}

}  // namespace
}  // namespace valora::text
