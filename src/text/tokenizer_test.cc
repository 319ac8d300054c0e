#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/testing/temp_dir.h"
#include "text/testing/tiny_tokenizer.h"

namespace valora::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Tokenizer, MergesWithinWordsAndKeepsSpecialTokensWhole) {
  const auto tokenizer = tiny_tokenizer();
  EXPECT_THAT(tokenizer->encode("abc<|im_end|>ab"), ElementsAre(257, 260, 256));
  EXPECT_THAT(tokenizer->encode("<|im_end"), ElementsAre('<', '|', 'i', 'm', '_', 'e', 'n', 'd'));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{257, 260, 256}, false), "abc<|im_end|>ab");
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{257, 260, 256}, true), "abcab");
}

TEST(Tokenizer, ReadsBytesThatAreNotUtf8AsReplacementCharacters) {
  EXPECT_THAT(tiny_tokenizer()->encode("a\xFF"), ElementsAre('a', 0xEF, 0xBF, 0xBD));
}

TEST(Tokenizer, ReportsVocabulary) {
  const auto tokenizer = tiny_tokenizer();
  EXPECT_EQ(tokenizer->vocab_size(), 261);
  EXPECT_EQ(tokenizer->token_to_id("abc"), 257);
  EXPECT_EQ(tokenizer->token_to_id("<|im_start|>"), 259);
  EXPECT_EQ(tokenizer->token_to_id("nothing"), std::nullopt);
  EXPECT_EQ(tokenizer->token_bytes(0xE9), "\xE9");
  EXPECT_EQ(tokenizer->token_bytes(259), "<|im_start|>");
  EXPECT_EQ(tokenizer->token_bytes(-1), "");
  EXPECT_EQ(tokenizer->token_bytes(261), "");
  EXPECT_TRUE(tokenizer->is_special(259));
  EXPECT_FALSE(tokenizer->is_special(258));
  EXPECT_FALSE(tokenizer->is_special(1000));
}

TEST(Tokenizer, AddedTokenOutsideByteAlphabetDecodesToItself) {
  Json json = tiny_tokenizer_json();
  json["added_tokens"].push_back(added_token_json(261, "字", false));
  json["added_tokens"].push_back(added_token_json(262, "<img>", false));
  const auto tokenizer = Tokenizer::from_json(json, "tiny");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ((*tokenizer)->token_bytes(261), "字");
  EXPECT_EQ((*tokenizer)->decode(std::vector<int32_t>{262, 261}, true), "<img>字");
}

TEST(Tokenizer, EncodesTheSameFromManyThreads) {
  const auto tokenizer = tiny_tokenizer();
  const std::string text = "hehe abc ab c a<|im_start|>bcb he the then cab";
  const auto expected = tokenizer->encode(text);
  std::vector<std::vector<int32_t>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) result = tokenizer->encode(text);
    });
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

TEST(Tokenizer, LengthSettingsOfTheFileAreNotApplied) {
  Json json = tiny_tokenizer_json();
  json["truncation"] = {
      {"max_length", 1}, {"strategy", "LongestFirst"}, {"stride", 0}, {"direction", "Right"}};
  EXPECT_EQ(Tokenizer::from_json(json, "tiny").value()->encode("xyz").size(), 3);
}

TEST(Tokenizer, LoadErrorNamesFile) {
  const auto dir = std::filesystem::path(::testing::TempDir()) / "valora_tokenizer_test";
  std::filesystem::create_directories(dir);
  EXPECT_THAT(Tokenizer::load((dir / "nowhere").string()).error().message,
              HasSubstr("tokenizer.json"));
  std::ofstream(dir / "tokenizer.json") << tiny_tokenizer_json();
  EXPECT_TRUE(Tokenizer::load(dir.string()).ok());
  std::ofstream(dir / "tokenizer.json") << R"({"version": "1.0", "version": "1.0"})";
  EXPECT_FALSE(Tokenizer::load(dir.string()).ok());
  std::filesystem::remove_all(dir);
}

struct Refusal {
  const char* patch;  // a JSON merge patch for the tiny tokenizer
  const char* reason;
};

class TokenizerRefusal : public ::testing::TestWithParam<Refusal> {};

TEST_P(TokenizerRefusal, NamesFileAndReason) {
  Json json = tiny_tokenizer_json();
  json.merge_patch(Json::parse(GetParam().patch));
  const auto tokenizer = Tokenizer::from_json(json, "some/tokenizer.json");
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_THAT(tokenizer.error().message, HasSubstr("some/tokenizer.json"));
  EXPECT_THAT(tokenizer.error().message, HasSubstr(GetParam().reason));
}

constexpr const char* kToken =
    R"("single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true)";

std::string added(const std::string& tokens) { return R"({"added_tokens": [)" + tokens + "]}"; }

INSTANTIATE_TEST_SUITE_P(
    Parts, TokenizerRefusal,
    ::testing::Values(
        Refusal{R"({"version": "2.0"})", "version \"2.0\""},
        Refusal{R"({"extra": 1})", "unknown field \"extra\""},
        Refusal{R"({"normalizer": {"type": "Nmt"}})", "normalizer \"Nmt\" is not supported"},
        Refusal{R"({"normalizer": {"form": 1}})", "unknown field \"form\""},
        Refusal{R"({"normalizer": [1]})", "normalizer: must be an object"},
        Refusal{R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Strip"}]}})",
                "normalizers[0]"},
        Refusal{R"({"pre_tokenizer": {"type": "Whitespace"}})",
                "pre-tokenizer \"Whitespace\" is not supported"},
        Refusal{R"({"pre_tokenizer": {"add_prefix_space": "no"}})", "\"add_prefix_space\" must be"},
        Refusal{R"({"post_processor": {"type": "BertProcessing"}})",
                "\"BertProcessing\" is not supported"},
        Refusal{R"({"decoder": {"type": "CTC"}})", "decoder \"CTC\" is not supported"},
        Refusal{R"({"decoder": null})", "without a decoder"},
        Refusal{R"({"model": null})", "model: must be an object"},
        Refusal{R"({"model": {"type": "Unigram"}})", "model \"Unigram\" is not supported"}));

INSTANTIATE_TEST_SUITE_P(
    Bpe, TokenizerRefusal,
    ::testing::Values(Refusal{R"({"model": {"dropout": 0.1}})", "\"dropout\" is not supported"},
                      Refusal{R"({"model": {"byte_fallback": "yes"}})",
                              "\"byte_fallback\" must be"},
                      Refusal{R"({"model": {"end_of_word_suffix": "</w>"}})",
                              "\"end_of_word_suffix\" is not supported"},
                      Refusal{R"({"model": {"continuing_subword_prefix": "##"}})",
                              "\"continuing_subword_prefix\" is not"},
                      Refusal{R"({"model": {"unk_token": "<unk>"}})",
                              "unk_token \"<unk>\" is not in the vocabulary"},
                      Refusal{R"({"model": {"unk_token": 3}})", "\"unk_token\" must be a string"},
                      Refusal{R"({"model": {"vocab": {"new": 5}}})", "both have the id 5"},
                      Refusal{R"({"model": {"vocab": {"new": -1}}})", "the id of \"new\""},
                      Refusal{R"({"model": {"vocab": {"new": 4000000000}}})", "the id of \"new\""},
                      Refusal{R"({"model": {"vocab": {"new": "5"}}})", "the id of \"new\""},
                      Refusal{R"({"model": {"vocab": [1]}})", "model.vocab"},
                      Refusal{R"({"model": {"merges": {"a": 1}}})", "\"merges\" must be an array"},
                      Refusal{R"({"model": {"merges": ["a b", "a nowhere"]}})",
                              "model.merges[1]: \"nowhere\" is not in"},
                      Refusal{R"({"model": {"merges": ["a d"]}})",
                              "model.merges[0]: \"ad\" is not in the vocabulary"},
                      Refusal{R"({"model": {"merges": ["a b c"]}})", "model.merges[0]"},
                      Refusal{R"({"model": {"merges": ["ab"]}})", "model.merges[0]"},
                      Refusal{R"({"model": {"merges": [["a", "b", "c"]]}})", "model.merges[0]"},
                      Refusal{R"({"model": {"merges": [["a", 1]]}})", "model.merges[0]"}));

// As `tokenizers` 0.22 reads such files.
TEST(Tokenizer, AddedTokensTakeNextFreeId) {
  Json json = tiny_tokenizer_json();
  Json again = added_token_json(259, "<x>", true);
  again["lstrip"] = true;
  json["added_tokens"] = {added_token_json(300, "<x>", true), added_token_json(259, "<y>", true),
                          added_token_json(7, "ab", true), added_token_json(5, "", true), again};
  const auto tokenizer = Tokenizer::from_json(json, "tiny").value();
  EXPECT_EQ(tokenizer->token_to_id("<x>"), 259);
  EXPECT_EQ(tokenizer->token_to_id("<y>"), 260);
  EXPECT_EQ(tokenizer->token_to_id("ab"), 256) << "the model's";
  EXPECT_EQ(tokenizer->vocab_size(), 261);
  EXPECT_THAT(tokenizer->encode("b <x>", false), ElementsAre('b', 259)) << "the last flags";
}

TEST(Tokenizer, RefusesWrongAddedTokens) {
  const auto refusal = [](const std::string& tokens) {
    Json json = tiny_tokenizer_json();
    json.merge_patch(Json::parse(added(tokens)));
    const auto tokenizer = Tokenizer::from_json(json, "x");
    return tokenizer.ok() ? "accepted" : tokenizer.error().message;
  };
  const auto token = [](int id, const std::string& content) {
    return R"({"id": )" + std::to_string(id) + R"(, "content": ")" + content + "\", " + kToken +
           "}";
  };
  EXPECT_EQ(refusal(token(259, "<a>") + "," + token(260, "<b>")), "accepted");
  EXPECT_EQ(refusal(token(256, "ab")), "accepted");
  EXPECT_THAT(refusal(token(259, std::string(2000, 'x'))), HasSubstr("\"content\" has more than"));
  EXPECT_THAT(refusal(R"({"id": 259, "content": "<a>"})"), HasSubstr("\"single_word\" is missing"));
  EXPECT_THAT(refusal("7"), HasSubstr("added_tokens[0]"));
}

Json llama_json() {
  Json json = tiny_tokenizer_json();
  json["added_tokens"] = {added_token_json(0, "<unk>", true), added_token_json(1, "<s>", true)};
  json["normalizer"] = Json::parse(R"({"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]})");
  json["pre_tokenizer"] = nullptr;
  json["post_processor"] = Json::parse(R"({"type": "TemplateProcessing", "single": [
      {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}})");
  json["decoder"] = Json::parse(R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
      {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})");
  json["model"] =
      Json::parse(R"({"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
      "vocab": {"<unk>": 0, "<s>": 1, "<0x0A>": 2, "<0xC3>": 3, "<0xA9>": 4, "▁": 5, "a": 6, "▁a": 7, "b": 8},
      "merges": ["▁ a"]})");
  return json;
}

TEST(Tokenizer, LlamaPrefixesEveryTextBetweenAddedTokens) {
  const auto tokenizer = Tokenizer::from_json(llama_json(), "llama").value();
  EXPECT_THAT(tokenizer->encode("a a"), ElementsAre(1, 7, 7));
  EXPECT_THAT(tokenizer->encode("b<s>a", false), ElementsAre(5, 8, 1, 7));
  EXPECT_THAT(tokenizer->encode("\né", false), ElementsAre(5, 2, 3, 4));
  EXPECT_THAT(tokenizer->encode("字字", false), ElementsAre(5, 0));
  EXPECT_THAT(tokenizer->encode(""), ElementsAre(1));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{1, 7, 7, 3, 4}, true), "a aé");
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{1, 7, 7, 3}, false), "<s> a a�");
  EXPECT_EQ(tokenizer->token_bytes(7), " a");
  EXPECT_EQ(tokenizer->token_bytes(2), "\n");
  EXPECT_EQ(*tokenizer->token_text(7), "▁a");
  EXPECT_EQ(tokenizer->token_text(9), nullptr);
}

TEST(Tokenizer, SchemeFirstPrependsOnlyAtBeginning) {
  Json json = llama_json();
  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}, {"split", false}};
  const auto tokenizer = Tokenizer::from_json(json, "llama").value();
  EXPECT_THAT(tokenizer->encode("a<s>a", false), ElementsAre(7, 1, 6));
  EXPECT_THAT(tokenizer->encode("<s>a a", false), ElementsAre(1, 6, 7));
  json["pre_tokenizer"]["prepend_scheme"] = "always";
  EXPECT_THAT(Tokenizer::from_json(json, "llama").value()->encode("a<s>a", false),
              ElementsAre(7, 1, 7));
}

TEST(Tokenizer, RefusesAnAddedTokenThatNormalizesToNothing) {
  Json json = llama_json();
  json["normalizer"] = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
  json["added_tokens"].push_back(added_token_json(9, "  ", false));
  EXPECT_THAT(Tokenizer::from_json(json, "llama").error().message,
              HasSubstr("is empty after normalization"));
}

TEST(Tokenizer, TakesMergesAsPairs) {
  Json json = tiny_tokenizer_json();
  json["model"]["merges"] = Json::parse(R"([["a", "b"], ["ab", "c"]])");
  EXPECT_THAT(Tokenizer::from_json(json, "tiny").value()->encode("abc"), ElementsAre(257));
}

TEST(Tokenizer, FilesInsteadOfTokenizerJsonAreNamed) {
  const valora::testing::TempDir folder;
  const auto refusal = [&] { return Tokenizer::load(folder.path()).error().message; };
  EXPECT_EQ(refusal(), folder.file("tokenizer.json") + " does not exist");
  folder.write("tokenizer.model", "");
  EXPECT_THAT(refusal(), HasSubstr("tokenizer.model alone is not read"));
  folder.write("tekken.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr("tekken.json is Mistral's own form of the tokenizer"));
  folder.write("tokenizer.json", tiny_tokenizer_json().dump());
  EXPECT_TRUE(Tokenizer::load(folder.path()).ok());
}

}  // namespace
}  // namespace valora::text
