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
  EXPECT_EQ(settings(R"({"fps":[]})").prompt.media_settings, MediaSettings{});
  for (const char* wrong : {R"({"size":{}})", R"({"max_pixels":1.5})", R"({"fps":"2"})", "[1]",
                            R"({"fps":["2"]})", R"({"fps":[1,2]})", R"({"do_sample_frames":5})"}) {
    const Status status = settings(wrong).status;
    ASSERT_FALSE(status.ok()) << wrong;
    EXPECT_EQ(status.error().param, "mm_processor_kwargs") << wrong;
  }
}

// Of a conversation with so many videos of this URL.
Parsed with_videos(const std::string& kwargs, size_t videos, const std::string& url) {
  Parsed out;
  ChatMessage message{.role = "user", .parts = {}};
  for (size_t i = 0; i < videos; ++i)
    message.parts.emplace_back(MediaRef{MediaRef::Kind::kVideo, url});
  out.prompt.messages.push_back(std::move(message));
  const Json body = Json::parse(R"({"mm_processor_kwargs":)" + kwargs + "}");
  out.status = parse_rendering(body, {}, out.prompt);
  return out;
}

TEST(RenderingFields, WhatQwensClientSendsWithItsFrames) {
  const std::string list = "data:video/jpeg;base64,AA==,AA==", file = "data:video/mp4;base64,AA==";
  const auto sent = with_videos(R"({"fps":[4.0],"do_sample_frames":false})", 2, list);
  EXPECT_TRUE(sent.status.ok());
  EXPECT_EQ(sent.prompt.media_settings.fps, 4.0);
  EXPECT_EQ(with_videos(R"({"fps":[4,4.0]})", 2, file).prompt.media_settings.fps, 4.0);
  EXPECT_TRUE(with_videos(R"({"do_sample_frames":true})", 1, file).status.ok());
  for (const auto& [kwargs, url] :
       {std::pair{R"({"fps":[4,2]})", list}, std::pair{R"({"fps":[4,4,4]})", list},
        std::pair{R"({"do_sample_frames":false})", file},
        std::pair{R"({"do_sample_frames":true})", list}}) {
    const Status status = with_videos(kwargs, 2, url).status;
    ASSERT_FALSE(status.ok()) << kwargs;
    EXPECT_EQ(status.error().param, "mm_processor_kwargs") << kwargs;
  }
}

}  // namespace
}  // namespace valora::server
