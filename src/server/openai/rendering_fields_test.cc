#include "server/openai/rendering_fields.h"

#include <gtest/gtest.h>

namespace valora::server {
namespace {

struct Parsed {
  ChatPrompt prompt;
  Status status;
};

Parsed rendering_of(const char* body, bool trusted = true) {
  RequestLimits limits;
  limits.chat_templates = trusted;
  Parsed out;
  out.status = parse_rendering(Json::parse(body), limits, out.prompt);
  return out;
}

TEST(RenderingFields, ATemplateIsTakenOnlyIfTheServerTrustsRequests) {
  EXPECT_EQ(rendering_of(R"({"chat_template":"{{ messages }}"})").prompt.chat_template,
            "{{ messages }}");
  EXPECT_EQ(rendering_of(R"({"chat_template":5})").status.error().param, "chat_template");
  const Parsed refused = rendering_of(R"({"chat_template":"x"})", false);
  EXPECT_EQ(refused.status.error().param, "chat_template");
  EXPECT_NE(refused.status.error().message.find("--trust-request-chat-template"),
            std::string::npos);
  for (const char* nothing : {R"({})", R"({"chat_template":null})", R"({"chat_template":""})"})
    EXPECT_TRUE(rendering_of(nothing, false).status.ok()) << nothing;
}

TEST(RenderingFields, SettingsOfMedia) {
  const auto settings = [](const char* kwargs) {
    return rendering_of((R"({"mm_processor_kwargs":)" + std::string(kwargs) + "}").c_str());
  };
  const MediaSettings all =
      settings(R"({"min_pixels":1,"max_pixels":2,"fps":0.5})").prompt.media_settings;
  EXPECT_EQ(all, (MediaSettings{1, 2, 0.5}));
  EXPECT_EQ(settings(R"({"max_pixels":null})").prompt.media_settings, MediaSettings{});
  for (const char* wrong : {R"({"size":{}})", R"({"max_pixels":1.5})", R"({"fps":"2"})", "[1]"}) {
    const Status status = settings(wrong).status;
    ASSERT_FALSE(status.ok()) << wrong;
    EXPECT_EQ(status.error().param, "mm_processor_kwargs") << wrong;
  }
}

}  // namespace
}  // namespace valora::server
