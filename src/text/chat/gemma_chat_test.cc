#include <gtest/gtest.h>

#include "text/chat/chat_formats.h"
#include "text/testing/chat_parts.h"

namespace valora::text {
namespace {

using testing::text;

TEST(GemmaChat, ASystemMessageBeginsTheFirstTurn) {
  const ChatPart image{ChatPart::Kind::kImage, {}};
  EXPECT_EQ(make_gemma_chat()
                ->render({{"system", {text(" Be brief. ")}},
                          {"user", {text(" one "), image}},
                          {"assistant", {text("\ntwo\n")}},
                          {"user", {image, text("three")}}},
                         true)
                .value(),
            "<bos><start_of_turn>user\n Be brief. \n\none<start_of_image><end_of_turn>\n"
            "<start_of_turn>model\ntwo<end_of_turn>\n"
            "<start_of_turn>user\n<start_of_image>three<end_of_turn>\n<start_of_turn>model\n");
}

TEST(GemmaChat, TurnsMustAlternate) {
  const auto refused = [](const std::vector<ChatMessage>& messages) {
    return !make_gemma_chat()->render(messages, true).ok();
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({{"assistant", {text("a")}}}));
  EXPECT_TRUE(refused({{"user", {text("a")}}, {"user", {text("b")}}}));
  EXPECT_TRUE(refused({{"user", {text("a")}}, {"system", {text("b")}}}));
  EXPECT_FALSE(refused({{"user", {text("a")}}}));
}

}  // namespace
}  // namespace valora::text
