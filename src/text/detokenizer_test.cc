#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include "text/testing/tiny_tokenizer.h"

namespace valora::text {
namespace {

// In the tiny tokenizer, ids below 256 are bytes.
TEST(Detokenizer, HoldsACharacterUntilItIsWhole) {
  Detokenizer detokenizer(tiny_tokenizer(), false);
  EXPECT_EQ(detokenizer.push('a'), "a");
  EXPECT_EQ(detokenizer.push(0xF0), "");
  EXPECT_EQ(detokenizer.push(0x9F), "");
  EXPECT_EQ(detokenizer.push(0x98), "");
  EXPECT_EQ(detokenizer.push(0x80), "😀");
  EXPECT_EQ(detokenizer.push(257), "abc");
  EXPECT_EQ(detokenizer.flush(), "");
}

TEST(Detokenizer, InvalidBytesBecomeOneReplacementAtOnce) {
  Detokenizer detokenizer(tiny_tokenizer(), false);
  EXPECT_EQ(detokenizer.push(0xE5), "");
  EXPECT_EQ(detokenizer.push(0xAD), "");
  EXPECT_EQ(detokenizer.push('x'), "�x");
  EXPECT_EQ(detokenizer.push(0x80), "�");
}

TEST(Detokenizer, FlushEndsAnIncompleteCharacterOnce) {
  Detokenizer detokenizer(tiny_tokenizer(), false);
  EXPECT_EQ(detokenizer.push(0xE5), "");
  EXPECT_EQ(detokenizer.push(0xAD), "");
  EXPECT_EQ(detokenizer.flush(), "�");
  EXPECT_EQ(detokenizer.flush(), "");
}

TEST(Detokenizer, PassesOverSpecialAndUnknownIds) {
  Detokenizer skipping(tiny_tokenizer(), true);
  EXPECT_EQ(skipping.push(0xC3), "");
  EXPECT_EQ(skipping.push(260), "");
  EXPECT_EQ(skipping.push(0xA9), "é");
  EXPECT_EQ(skipping.push(99999), "");
  Detokenizer keeping(tiny_tokenizer(), false);
  EXPECT_EQ(keeping.push(0xC3), "");
  EXPECT_EQ(keeping.push(260), "�<|im_end|>");
}

}  // namespace
}  // namespace valora::text
