#include "serving/prompts/retrieval_recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/testing/temp_dir.h"
#include "text/testing/tiny_tokenizer.h"

namespace valora::serving {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Pooling = EmbeddingRecipe::Pooling;

class RetrievalRecipe : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const auto path = std::filesystem::path(dir_.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    dir_.write(name, text);
  }
  void modules(const std::string& pooling) {
    write("modules.json",
          R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
                   {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                   {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
    write("1_Pooling/config.json", pooling);
  }
  Result<RetrievalCard> read(const TemplateInUse& in_use = {}) {
    const auto tokenizer = text::Tokenizer::from_json(text::tiny_tokenizer_json(), "test");
    return read_retrieval(FolderPath(dir_.path()), **tokenizer, in_use, 8);
  }
  valora::testing::TempDir dir_;
};

TEST_F(RetrievalRecipe, FoldersWithoutFilesHaveDefaults) {
  const auto card = read();
  ASSERT_TRUE(card.ok()) << card.error().message;
  EXPECT_EQ(card->embedding.pooling, Pooling::kLastToken);
  EXPECT_FALSE(card->embedding.described);
  EXPECT_TRUE(card->embedding.refusal.empty());
  EXPECT_FALSE(card->judge) << "the tiny tokenizer has letters alone";
}

TEST_F(RetrievalRecipe, PoolingIsReadInBothForms) {
  for (const auto& [config, pooling, refused] :
       {std::tuple{R"({"pooling_mode_lasttoken": true, "pooling_mode_mean_tokens": false})",
                   Pooling::kLastToken, false},
        std::tuple{R"({"pooling_mode_mean_tokens": true})", Pooling::kMean, false},
        std::tuple{R"({"pooling_mode": "mean"})", Pooling::kMean, false},
        std::tuple{R"({"pooling_mode": "lasttoken"})", Pooling::kLastToken, false},
        std::tuple{R"({"pooling_mode_cls_token": true})", Pooling::kLastToken, true},
        std::tuple{R"({"pooling_mode": "mean", "include_prompt": false})", Pooling::kMean, true}}) {
    modules(config);
    const auto card = read();
    ASSERT_TRUE(card.ok()) << card.error().message;
    EXPECT_TRUE(card->embedding.described);
    EXPECT_EQ(card->embedding.pooling, pooling) << config;
    EXPECT_EQ(!card->embedding.refusal.empty(), refused) << config;
  }
}

TEST_F(RetrievalRecipe, OtherModulesAreRefusedByName) {
  write("modules.json", R"([{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])");
  EXPECT_THAT(read()->embedding.refusal, HasSubstr("Dense"));
}

TEST_F(RetrievalRecipe, ModulesLieInTheFolder) {
  for (const char* path : {"", "..", "/etc", "a/b", "missing"}) {
    write("modules.json", R"([{"path": ")" + std::string(path) + R"(", "type": "x.Pooling"}])");
    EXPECT_FALSE(read().ok()) << path;
  }
}

TEST_F(RetrievalRecipe, PromptsAndSizesAreRead) {
  modules(R"({"pooling_mode": "lasttoken"})");
  dir_.write(
      "config_sentence_transformers.json",
      R"({"prompts": {"query": "Query: ", "document": ""}, "default_prompt_name": "query"})");
  write("config.json", R"({"is_matryoshka": true, "matryoshka_dimensions": [4, 2]})");
  const auto card = read();
  ASSERT_TRUE(card.ok()) << card.error().message;
  EXPECT_EQ(card->embedding.default_prompt, "query");
  EXPECT_EQ(card->embedding.prompts.size(), 2u);
  EXPECT_THAT(card->embedding.sizes, ElementsAre(2, 4));
  EXPECT_FALSE(card->embedding.any_size);
  write("config.json", R"({"is_matryoshka": true})");
  EXPECT_TRUE(read()->embedding.any_size);
  write("config.json", R"({"matryoshka_dimensions": [9]})");
  EXPECT_THAT(read().error().message, HasSubstr("matryoshka_dimensions"));
}

TEST_F(RetrievalRecipe, RerankersNameTheirTokensAndTemplate) {
  write("modules.json",
        R"([{"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"},
                 {"path": "1_LogitScore", "type": "x.logit_score.LogitScore"}])");
  write("1_LogitScore/config.json", R"({"true_token_id": 7, "false_token_id": 3})");
  const std::string roles = "{{ messages | selectattr('role', 'eq', 'query') }}{{ 'document' }}";
  auto card = read({.text = roles});
  ASSERT_TRUE(card.ok()) << card.error().message;
  ASSERT_TRUE(card->judge);
  EXPECT_EQ(card->judge->yes, 7);
  EXPECT_EQ(card->judge->no, 3);
  EXPECT_TRUE(card->judge->described && card->judge->own_roles);
  EXPECT_EQ(card->judge->chat_template, "");
  EXPECT_FALSE(read({.text = "{{ messages }}"})->judge->own_roles);
  write("additional_chat_templates/reranker.jinja", "pair");
  EXPECT_EQ(read({.text = roles})->judge->chat_template, "pair");
  EXPECT_EQ(read({.text = roles, .given = true})->judge->chat_template, "")
      << "a template of the options goes before the folder's";
  write("1_LogitScore/config.json", R"({"true_token_id": 7, "false_token_id": null})");
  EXPECT_THAT(read().error().message, HasSubstr("false_token_id"));
}

}  // namespace
}  // namespace valora::serving
