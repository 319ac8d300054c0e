// Expected tokens and flags come from transformers' fast tokenizers on the same files;
// tests/parity/test_tokenizer_folders.py compares the two.
#include "text/folder_tokens.h"

#include <gmock/gmock.h>

#include "base/testing/temp_dir.h"
#include "text/testing/tiny_tokenizer.h"

namespace valora::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using valora::testing::TempDir;

Json object(const std::string& content, const Json& flags = Json::object()) {
  Json json = {{"content", content},  {"lstrip", false},      {"rstrip", false},
               {"normalized", false}, {"single_word", false}, {"special", true}};
  json.update(flags);
  return json;
}

class FolderTokensTest : public ::testing::Test {
 protected:
  void write(const std::string& file, const Json& json) { dir_.write(file, json.dump()); }
  // Contents and flags, in order of addition.
  std::vector<std::string> added() const {
    std::vector<std::string> out;
    const auto folder = InputFolder::open(dir_.path());
    const auto tokens = read_folder_tokens(*folder, tiny_tokenizer_json());
    if (!tokens.ok()) return {tokens.error().message};
    for (const AddedToken& t : *tokens)
      out.push_back(t.content + (t.lstrip ? " l" : "") + (t.normalized ? " n" : "") +
                    (t.special ? " s" : ""));
    return out;
  }
  // The special tokens of tiny_tokenizer.h in the format of tokenizer_config.json.
  static Json decoder() { return {{"259", object("<|im_start|>")}, {"260", object("<|im_end|>")}}; }
  TempDir dir_;
};

TEST_F(FolderTokensTest, MissingOrRedundantFilesAddNothing) {
  EXPECT_THAT(added(), IsEmpty());
  write("tokenizer_config.json",
        {{"added_tokens_decoder", decoder()}, {"eos_token", "<|im_end|>"}, {"pad_token", nullptr}});
  EXPECT_THAT(added(), IsEmpty());
}

TEST_F(FolderTokensTest, ConfigOnlyTokensAreAddedById) {
  Json tokens = decoder();
  tokens["1000"] = object("<late>");
  tokens["261"] = object("<early>", {{"special", false}, {"normalized", true}});
  tokens["260"]["lstrip"] = true;
  write("tokenizer_config.json", {{"added_tokens_decoder", tokens}, {"pad_token", "<early>"}});
  write("special_tokens_map.json", {{"unk_token", "<ignored>"}});
  write("added_tokens.json", {{"<ignored>", 270}});
  EXPECT_THAT(added(), ElementsAre("<|im_end|> l s", "<early> n s", "<late> s"))
      << "a named token is special";
}

TEST_F(FolderTokensTest, NamedAndAdditionalSpecialTokensAreAdded) {
  write("tokenizer_config.json",
        {{"added_tokens_decoder", decoder()},
         {"mask_token", object("<m>", {{"lstrip", true}, {"special", false}})},
         {"pad_token", "[PAD]"},
         {"unk_token", "ab"},
         {"additional_special_tokens", {"<x>", "<|im_start|>", "[PAD]"}},
         {"extra_special_tokens", {{"image_token", "<i>"}}}});
  EXPECT_THAT(added(), ElementsAre("ab s", "[PAD] s", "<m> l s", "<x> s", "<i> s"));
}

TEST_F(FolderTokensTest, OlderFilesApplyWithoutAddedTokensDecoder) {
  write("tokenizer_config.json", {{"pad_token", "<old>"}});
  write("special_tokens_map.json",
        {{"pad_token", "[PAD]"},
         {"mask_token", object("<m>", {{"lstrip", true}, {"special", false}})},
         {"additional_special_tokens", {"<z>"}}});
  write("added_tokens.json", {{"<w>", 261}, {"[PAD]", 262}, {"<v>", 270}});
  EXPECT_THAT(added(), ElementsAre("<w> n", "[PAD] s", "<v> n", "<m> l s", "<z> s"));
}

TEST_F(FolderTokensTest, RefusesInvalidTokens) {
  write("tokenizer_config.json", {{"added_tokens_decoder", {{"x1", object("<a>")}}}});
  EXPECT_THAT(added(), ElementsAre(HasSubstr("\"x1\" is not a token id")));
  write("tokenizer_config.json", {{"added_tokens_decoder", {1}}});
  EXPECT_THAT(added(), ElementsAre(HasSubstr("added_tokens_decoder: must be an object")));
  write("tokenizer_config.json", {{"pad_token", 3}});
  EXPECT_THAT(added(), ElementsAre(HasSubstr("pad_token")));
  write("tokenizer_config.json", Json::object());
  write("added_tokens.json", {{"<w>", -1}});
  EXPECT_THAT(added(), ElementsAre(HasSubstr("the id of \"<w>\" is out of range")));
}

TEST_F(FolderTokensTest, FolderTokenizerIncludesAddedTokens) {
  write("tokenizer.json", tiny_tokenizer_json());
  write("tokenizer_config.json", {{"added_tokens_decoder", {{"261", object("<|image_pad|>")}}}});
  const auto tokenizer = Tokenizer::load(dir_.path()).value();
  EXPECT_THAT(tokenizer->encode("a<|image_pad|>b", false), ElementsAre('a', 261, 'b'));
  EXPECT_TRUE(tokenizer->is_special(261));
}

}  // namespace
}  // namespace valora::text
