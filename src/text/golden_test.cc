// Compares with the output of the `tokenizers` package for the same files and texts
// (tests/parity/make_text_golden.py).
#include <gtest/gtest.h>

#include "base/json/json.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace valora::text {
namespace {

using Ids = std::vector<int32_t>;

std::string streamed(const std::shared_ptr<const Tokenizer>& tokenizer, const Ids& ids, bool skip) {
  Detokenizer detokenizer(tokenizer, skip);
  std::string out;
  for (const int32_t id : ids) out += detokenizer.push(id);
  return out + detokenizer.flush();
}

TEST(Golden, IdsAndTextsMatchReference) {
  const auto golden = read_json_file(VALORA_TEXT_TESTDATA "/golden.json");
  ASSERT_TRUE(golden.ok()) << golden.error().message;
  ASSERT_EQ(golden->size(), 5);
  for (const Json& entry : *golden) {
    SCOPED_TRACE(entry.at("name").get<std::string>());
    const auto tokenizer = Tokenizer::from_json(entry.at("tokenizer"), "golden");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    for (const Json& c : entry.at("encode")) {
      const auto text = c.at("text").get<std::string>();
      EXPECT_EQ((*tokenizer)->encode(text), c.at("ids").get<Ids>()) << text;
      EXPECT_EQ((*tokenizer)->encode(text, false), c.at("plain_ids").get<Ids>()) << text;
    }
    for (const Json& c : entry.at("decode")) {
      const auto ids = c.at("ids").get<Ids>();
      for (const bool skip : {false, true}) {
        const auto expected = c.at(skip ? "skipped" : "decoded").get<std::string>();
        EXPECT_EQ((*tokenizer)->decode(ids, skip), expected) << c.at("ids");
        EXPECT_EQ(streamed(*tokenizer, ids, skip), expected) << c.at("ids");
      }
    }
  }
}

}  // namespace
}  // namespace valora::text
