#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/chat/chat_formats.h"
#include "text/testing/chat_parts.h"

namespace valora::text {
namespace {

using ::testing::HasSubstr;
using testing::text;

std::string rendered(MistralChat kind) {
  return make_mistral_chat(kind)
      ->render({{"system", {text("Be brief.")}},
                {"user", {text(" a ")}},
                {"assistant", {text(" b ")}},
                {"user", {text("c")}}},
               true)
      .value();
}

TEST(MistralChat, EachKindRendersItsFormat) {
  EXPECT_EQ(rendered(MistralChat::kText),
            "<s> [INST] Be brief.\n\n a  [/INST]  b </s> [INST] c [/INST]");
  EXPECT_EQ(rendered(MistralChat::kTokens),
            "<s>[INST]  a [/INST] b</s>[INST] Be brief.\n\nc[/INST]");
  EXPECT_EQ(rendered(MistralChat::kTekken),
            "<s>[INST] a [/INST] b </s>[INST]Be brief.\n\nc[/INST]");
  EXPECT_EQ(rendered(MistralChat::kTekkenSystem),
            "<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST] a [/INST] b </s>[INST]c[/INST]");
}

TEST(MistralChat, PicturesKeepPositionInTurn) {
  const auto format = make_mistral_chat(MistralChat::kText, "<image>\n");
  EXPECT_EQ(format->render({{"user", {text("a"), testing::image(), text("b")}}}, true).value(),
            "<s> [INST] a<image>\nb [/INST]");
}

TEST(MistralChat, RendersWithoutSystemPrompt) {
  for (const MistralChat kind : {MistralChat::kTekken, MistralChat::kTekkenSystem})
    EXPECT_EQ(make_mistral_chat(kind)->render({{"user", {text("a"), text("b")}}}, true).value(),
              "<s>[INST]ab[/INST]");
}

TEST(MistralChat, RefusesTurnsThatDoNotAlternateAndUnknownRoles) {
  const auto format = make_mistral_chat(MistralChat::kText);
  const auto said = [&](const std::vector<ChatMessage>& messages) {
    const auto made = format->render(messages, true);
    return made.ok() ? "" : made.error().message;
  };
  EXPECT_THAT(said({{"user", {}}, {"user", {}}}), HasSubstr("alternate"));
  EXPECT_THAT(said({{"system", {}}, {"assistant", {}}}), HasSubstr("alternate"));
  EXPECT_THAT(said({{"user", {}}, {"system", {}}}), HasSubstr("\"system\""));
  EXPECT_FALSE(format->render({}, true).ok());
}

}  // namespace
}  // namespace valora::text
