#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/chat/chat_formats.h"
#include "text/chat/tool_prompt.h"
#include "text/testing/chat_parts.h"

namespace valora::text {
namespace {

using ::testing::HasSubstr;
using testing::image;
using testing::text;
using testing::video;

std::string rendered(const std::vector<ChatMessage>& messages, bool prompt = true) {
  return make_qwen3_chat()->render(messages, prompt).value();
}

TEST(Qwen3Chat, HasNoDefaultSystemPrompt) {
  EXPECT_EQ(rendered({{"user", {text("Hi "), text("you")}}}),
            "<|im_start|>user\nHi you<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(rendered({{"system", {text("Be brief.")}}, {"user", {}}}, false),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n<|im_end|>\n");
}

// As in Qwen3.5.
TEST(Qwen3Chat, AddsAssistantTurnAndPictures) {
  EXPECT_EQ(make_qwen3_chat("<think>\n")
                ->render({{"user", {text("See "), image(), text(" and "), video()}}}, true)
                .value(),
            "<|im_start|>user\nSee <|vision_start|><|image_pad|><|vision_end|> and "
            "<|vision_start|><|video_pad|><|vision_end|><|im_end|>\n<|im_start|>assistant\n"
            "<think>\n");
}

TEST(Qwen3Chat, ThinkingCanBeSwitchedOff) {
  const std::vector<ChatMessage> hi = {{"user", {text("Hi")}}};
  const std::string turn = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
  for (const char* opening : {"", "<think>\n"}) {
    const auto format = make_qwen3_chat(opening);
    const auto with = [&](const Json& variables) { return format->render(hi, true, variables); };
    EXPECT_EQ(*with({{"enable_thinking", false}}), turn + "<think>\n\n</think>\n\n");
    EXPECT_EQ(*with({{"enable_thinking", true}}), turn + opening);
    EXPECT_EQ(with({{"enable_thinking", 1}}).error().param, "chat_template_kwargs");
    EXPECT_THAT(with({{"thinking", false}}).error().message, HasSubstr("\"thinking\""));
  }
}

TEST(Qwen3Chat, ThoughtOfTheLastAnswerIsWritten) {
  const ChatMessage answer{.role = "assistant", .parts = {text("b </think>")}, .thought = "\nhm\n"};
  EXPECT_EQ(rendered({{"user", {text("a")}}, answer}, false),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n<think>\nhm\n</think>\n\n"
            "b </think><|im_end|>\n");
  EXPECT_EQ(rendered({{"user", {text("a")}}, answer, {"user", {text("c")}}}, false),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb </think><|im_end|>\n"
            "<|im_start|>user\nc<|im_end|>\n");
}

TEST(Qwen3Chat, ThinkingIsRemovedFromEarlierAnswers) {
  EXPECT_EQ(rendered({{"user", {text("a")}},
                      {"assistant", {text("<think>\nhm\n</think>\n\nb")}},
                      {"user", {text("c")}},
                      {"assistant", {text("d")}},
                      {"user", {text("e")}}}),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
            "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\nd<|im_end|>\n"
            "<|im_start|>user\ne<|im_end|>\n<|im_start|>assistant\n");
}

TEST(Qwen3Chat, ThinkingStaysAfterLastQuestion) {
  EXPECT_EQ(
      rendered({{"user", {text("a")}}, {"assistant", {text("<think>\nhm\n</think>\n\nb")}}}, false),
      "<|im_start|>user\na<|im_end|>\n"
      "<|im_start|>assistant\n<think>\nhm\n</think>\n\nb<|im_end|>\n");
  EXPECT_EQ(rendered({{"user", {text("a")}}, {"assistant", {text("\nb")}}}, false),
            "<|im_start|>user\na<|im_end|>\n"
            "<|im_start|>assistant\n<think>\n\n</think>\n\nb<|im_end|>\n");
}

TEST(Qwen3Chat, ToolResultsAreNotQuestions) {
  std::vector<ChatMessage> messages = {{"user", {text("Where?")}},
                                       {"assistant", {text("<think>\nlook\n</think>\n\n")}},
                                       {"tool", {text("here")}}};
  messages[1].tool_calls = {{"1", "look", {{"at", "it"}}}};
  const std::string out = rendered(with_tools_in_text(messages, nullptr));
  EXPECT_THAT(out, HasSubstr("<|im_start|>assistant\n<think>\nlook\n</think>\n\n<tool_call>\n"));
  EXPECT_THAT(out,
              HasSubstr("<|im_start|>user\n<tool_response>\nhere\n</tool_response><|im_end|>"));
}

TEST(Qwen3Chat, RefusesUnknownRolesAndNoMessages) {
  const auto unknown = make_qwen3_chat()->render({{"narrator", {text("hi")}}}, true);
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("\"narrator\""));
  EXPECT_FALSE(make_qwen3_chat()->render({}, true).ok());
}

}  // namespace
}  // namespace valora::text
