#include <gtest/gtest.h>

#include "text/chat/chat_formats.h"
#include "text/testing/chat_parts.h"

namespace valora::text {
namespace {

using testing::text;

TEST(Idefics3Chat, TurnBeginningWithImageHasNoSpace) {
  const ChatPart image{ChatPart::Kind::kImage, {}};
  EXPECT_EQ(make_idefics3_chat(true)
                ->render({{"system", {text("Be brief.")}},
                          {"user", {image, text("one"), image}},
                          {"assistant", {}},
                          {"user", {text("and"), image}}},
                         true)
                .value(),
            "<|im_start|>System: Be brief.<end_of_utterance>\n"
            "User:<image>one<image><end_of_utterance>\n"
            "Assistant: <end_of_utterance>\n"
            "User: and<image><end_of_utterance>\nAssistant:");
  EXPECT_EQ(make_idefics3_chat(false)->render({{"user", {text("a")}}}, false).value(),
            "User: a<end_of_utterance>\n");
  EXPECT_FALSE(make_idefics3_chat(true)->render({{"tool", {text("a")}}}, true).ok());
}

}  // namespace
}  // namespace valora::text
