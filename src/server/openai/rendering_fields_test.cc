#include "server/openai/messages.h"

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

TEST(RenderingFields, TemplateIsAcceptedOnlyIfRequestsAreTrusted) {
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

TEST(RenderingFields, MediaSettingsAreRead) {
  const auto settings = [](const std::string& fields) {
    return rendering_of(("{" + fields + "}").c_str());
  };
  const auto kwargs = [&](const std::string& object) {
    return settings(R"("mm_processor_kwargs":)" + object);
  };
  EXPECT_EQ(kwargs(R"({"min_pixels":1,"max_pixels":2,"fps":0.5})").prompt.media_settings,
            (MediaSettings{.min_pixels = 1, .max_pixels = 2, .fps = 0.5}));
  EXPECT_EQ(kwargs(R"({"max_pixels":null})").prompt.media_settings, MediaSettings{});
  EXPECT_EQ(kwargs(R"({"size":{"shortest_edge":1,"longest_edge":2}})").prompt.media_settings,
            (MediaSettings{.min_pixels = 1, .max_pixels = 2}));
  EXPECT_TRUE(
      kwargs(R"({"max_pixels":2,"size":{"shortest_edge":1,"longest_edge":2}})").status.ok());
  EXPECT_EQ(
      kwargs(R"({"videos_kwargs":{"fps":[3],"do_sample_frames":true}})").prompt.media_settings,
      (MediaSettings{.fps = 3, .do_sample_frames = true}));
  EXPECT_EQ(kwargs(R"({"fps":[]})").prompt.media_settings, MediaSettings{});
  for (const char* wrong :
       {R"({"size":{}})", R"({"size":{"shortest_edge":1}})", R"({"size":5})",
        R"({"size":{"shortest_edge":1,"longest_edge":2,"height":3}})",
        R"({"size":{"shortest_edge":1,"longest_edge":"2"}})",
        R"({"max_pixels":3,"size":{"shortest_edge":1,"longest_edge":2}})",
        R"({"images_kwargs":{"fps":1}})", R"({"images_kwargs":5})",
        R"({"videos_kwargs":{"crop":1}})", R"({"fps":1,"videos_kwargs":{"fps":1}})",
        R"({"max_pixels":1.5})", R"({"fps":"2"})", "[1]", R"({"fps":["2"]})", R"({"fps":[1,2]})",
        R"({"do_sample_frames":5})"}) {
    const Status status = kwargs(wrong).status;
    ASSERT_FALSE(status.ok()) << wrong;
    EXPECT_EQ(status.error().param, "mm_processor_kwargs") << wrong;
  }
  const auto io = [&](const std::string& object) {
    return settings(R"("media_io_kwargs":)" + object);
  };
  EXPECT_EQ(io(R"({"video":{"num_frames":4,"fps":2}})").prompt.media_settings.loader,
            (LoaderFrames{4, 2.0}));
  EXPECT_EQ(io(R"({"video":{},"image":{},"audio":null})").prompt.media_settings, MediaSettings{});
  for (const char* wrong : {R"({"video":{"num_frames":"invalid"}})", R"({"video":{"backend":"x"}})",
                            R"({"image":{"image_mode":"L"}})", R"({"film":{"fps":1}})", "5"}) {
    const Status status = io(wrong).status;
    ASSERT_FALSE(status.ok()) << wrong;
    EXPECT_EQ(status.error().param, "media_io_kwargs") << wrong;
  }
}

TEST(RenderingFields, SizesOfOneKindOfMediaGoBeforeThoseOfAll) {
  ChatPrompt prompt;
  ChatMessage message{.role = "user", .parts = {}};
  for (const auto kind : {MediaRef::Kind::kImage, MediaRef::Kind::kVideo})
    message.parts.emplace_back(MediaRef{kind, "data:x"});
  message.parts.emplace_back(MediaRef{MediaRef::Kind::kImage, "data:x", {.max_pixels = 50}});
  prompt.messages.push_back(std::move(message));
  const Json body = Json::parse(R"({"mm_processor_kwargs":{"max_pixels":9,
      "images_kwargs":{"size":{"shortest_edge":1,"longest_edge":2}},
      "videos_kwargs":{"max_pixels":3}}})");
  const Status status = parse_rendering(body, {}, prompt);
  ASSERT_TRUE(status.ok()) << status.error().message;
  const auto settings = [&](size_t part) {
    const auto& media = std::get<MediaRef>(prompt.messages[0].parts[part]);
    const bool image = media.kind == MediaRef::Kind::kImage;
    return in_request(
        media.settings,
        in_request(image ? prompt.image_settings : prompt.video_settings, prompt.media_settings));
  };
  EXPECT_EQ(settings(0), (MediaSettings{.min_pixels = 1, .max_pixels = 2}));
  EXPECT_EQ(settings(1), (MediaSettings{.max_pixels = 3}));
  EXPECT_EQ(settings(2), (MediaSettings{.min_pixels = 1, .max_pixels = 50}));
}

// Parses a conversation with this number of videos, all with the same URL.
Parsed with_videos(const std::string& kwargs, size_t videos, const std::string& url,
                   const std::string& field = "mm_processor_kwargs") {
  Parsed out;
  ChatMessage message{.role = "user", .parts = {}};
  for (size_t i = 0; i < videos; ++i)
    message.parts.emplace_back(MediaRef{MediaRef::Kind::kVideo, url});
  out.prompt.messages.push_back(std::move(message));
  const Json body = Json::parse("{\"" + field + "\":" + kwargs + "}");
  out.status = parse_rendering(body, {}, out.prompt);
  return out;
}

TEST(RenderingFields, FieldsOfQwensClientAreAccepted) {
  const std::string list = "data:video/jpeg;base64,AA==,AA==", file = "data:video/mp4;base64,AA==";
  const auto sent = with_videos(R"({"fps":[4.0],"do_sample_frames":false})", 2, list);
  EXPECT_TRUE(sent.status.ok());
  EXPECT_EQ(sent.prompt.media_settings.fps, 4.0);
  const auto rates = with_videos(R"({"fps":[4,2.5]})", 2, list);
  ASSERT_TRUE(rates.status.ok());
  const auto& parts = rates.prompt.messages.front().parts;
  EXPECT_EQ(std::get<MediaRef>(parts[0]).settings, MediaSettings{.fps = 4.0});
  EXPECT_EQ(std::get<MediaRef>(parts[1]).settings, MediaSettings{.fps = 2.5});
  EXPECT_TRUE(with_videos(R"({"do_sample_frames":true})", 1, file).status.ok());
  for (const auto& [kwargs, url] :
       {std::pair{R"({"fps":[4,4,4]})", list}, std::pair{R"({"do_sample_frames":true})", list}}) {
    const Status status = with_videos(kwargs, 2, url).status;
    ASSERT_FALSE(status.ok()) << kwargs;
    EXPECT_EQ(status.error().param, "mm_processor_kwargs") << kwargs;
  }
}

TEST(RenderingFields, FrameCountOfALoaderIsRefusedForFrameLists) {
  const auto sent = [](const char* kwargs, const char* url) {
    return with_videos(kwargs, 1, url, "media_io_kwargs").status;
  };
  const char* const few = R"({"video":{"num_frames":2}})";
  EXPECT_TRUE(sent(few, "data:video/mp4;base64,AA==").ok());
  for (const char* list : {"data:video/jpeg;base64,AA==", "Data:Video/JPEG;base64,AA=="}) {
    EXPECT_TRUE(sent(R"({"video":{"num_frames":-1}})", list).ok());
    ASSERT_FALSE(sent(few, list).ok());
    EXPECT_EQ(sent(few, list).error().param, "media_io_kwargs");
  }
}

}  // namespace
}  // namespace valora::server
