#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/testing/chat_parts.h"

namespace valora::text {
namespace {

using ::testing::HasSubstr;
using testing::image;
using testing::text;
using testing::video;

TEST(ChatMl, WritesTurnsWithPlaceholders) {
  const std::vector<ChatMessage> messages = {
      {"user", {text("see "), image(), text(" and "), video()}},
      {"assistant", {text("ok")}},
      {"user", {image()}}};
  const auto rendered = make_chatml()->render(messages, true);
  ASSERT_TRUE(rendered.ok());
  EXPECT_EQ(*rendered,
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
            "<|im_start|>user\nsee <|vision_start|><|image_pad|><|vision_end|> and "
            "<|vision_start|><|video_pad|><|vision_end|><|im_end|>\n"
            "<|im_start|>assistant\nok<|im_end|>\n"
            "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|><|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(ChatMl, CallersSystemTurnReplacesDefault) {
  EXPECT_EQ(*make_chatml()->render({{"system", {text("Be brief.")}}, {"user", {}}}, false),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n<|im_end|>\n");
  EXPECT_EQ(*make_chatml("")->render({{"user", {text("hi")}}}, false),
            "<|im_start|>user\nhi<|im_end|>\n");
  EXPECT_THAT(*make_chatml()->render({{"user", {}}, {"system", {text("late")}}}, false),
              HasSubstr("helpful"));
}

TEST(ChatMl, RefusesUnknownRolesAndNoMessages) {
  const auto unknown = make_chatml()->render({{"narrator", {text("hi")}}}, true);
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("\"narrator\""));
  EXPECT_FALSE(make_chatml()->render({}, true).ok());
}

}  // namespace
}  // namespace valora::text
