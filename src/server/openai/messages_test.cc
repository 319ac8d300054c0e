#include "server/openai/messages.h"

#include <gtest/gtest.h>

#include "server/openai/requests.h"

namespace valora::server {
namespace {

Result<ChatPrompt> messages(const std::string& list, MediaLimits limits = {}) {
  auto body = parse_chat(R"({"messages":)" + list + "}", limits);
  if (!body.ok()) return body.error();
  return std::get<ChatPrompt>(body->prompts.at(0));
}

TEST(ParseMessages, ReadsPartsInOrder) {
  const auto prompt = messages(R"([{"role":"developer","content":"be brief"},
    {"role":"user","content":[{"type":"text","text":"a"},
      {"type":"image_url","image_url":{"url":"u1","detail":"high","uuid":"q"}},
      {"image_url":"u2"},{"text":"b"},"c",{"type":"video_url","video_url":{"url":"v"}}]},
    {"role":"assistant","content":null},{"role":"assistant","content":"x","tool_calls":[]}])");
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  const auto& m = prompt.value().messages;
  ASSERT_EQ(m.size(), 4u);
  EXPECT_EQ(m[0].role, "system");
  ASSERT_EQ(m[1].parts.size(), 6u);
  EXPECT_EQ(std::get<std::string>(m[1].parts[0]), "a");
  EXPECT_EQ(std::get<MediaRef>(m[1].parts[1]).url, "u1");
  EXPECT_EQ(std::get<MediaRef>(m[1].parts[2]).url, "u2");
  EXPECT_EQ(std::get<std::string>(m[1].parts[3]), "b");
  EXPECT_EQ(std::get<std::string>(m[1].parts[4]), "c");
  EXPECT_EQ(std::get<MediaRef>(m[1].parts[5]).kind, MediaRef::Kind::kVideo);
  EXPECT_TRUE(m[2].parts.empty());
  EXPECT_FALSE(prompt.value().add_generation_prompt.has_value());
}

TEST(ParseMessages, ThoughtsOfEarlierTurnsHaveTwoNames) {
  const auto thought = [](const std::string& fields) {
    const auto prompt = messages(R"([{"role":"user","content":"x"},
        {"role":"assistant","content":"y",)" +
                                 fields + "}]");
    return prompt.ok() ? prompt->messages.at(1).thought
                       : std::optional("refused: " + prompt.error().param);
  };
  EXPECT_EQ(thought(R"("reasoning_content":"a")"), "a");
  EXPECT_EQ(thought(R"("reasoning":"a")"), "a");
  EXPECT_EQ(thought(R"("reasoning":"a","reasoning_content":"a")"), "a");
  EXPECT_EQ(thought(R"("reasoning":"")"), "") << "templates tell it from none";
  EXPECT_EQ(thought(R"("reasoning":null)"), std::nullopt);
  EXPECT_EQ(thought(R"("reasoning":"a","reasoning_content":"b")"),
            "refused: messages[1].reasoning");
  EXPECT_EQ(thought(R"("reasoning_content":5)"), "refused: messages[1].reasoning_content");
}

TEST(ParseMessages, IntegersOfCallsAreExactOrRefused) {
  const auto outcome = [](const std::string& number) {
    const auto prompt = messages(R"([{"role":"assistant","content":null,"tool_calls":[{"type":
        "function","function":{"name":"f","arguments":"{\"id\": )" +
                                 number + R"(}"}}]}])");
    return prompt.ok() ? prompt->messages[0].tool_calls[0].arguments : prompt.error().message;
  };
  for (const char* exact :
       {"18446744073709551615", "-9223372036854775808", "1.5", "1e300", "12345678901234567890"})
    EXPECT_EQ(outcome(exact), std::string("{\"id\": ") + exact + "}");
  for (const char* large : {"18446744073709551616", "-9223372036854775809"})
    EXPECT_NE(outcome(large).find(std::string(large) + ", which does not fit"), std::string::npos)
        << outcome(large);
}

TEST(ParseMessages, IntegersOfToolsAndVariablesAreExactOrRefused) {
  const auto param = [](const std::string& fields) {
    const auto body =
        parse_chat(R"({"messages":[{"role":"user","content":"x"}],)" + fields + "}", MediaLimits{});
    return body.ok() ? std::string("read") : body.error().param;
  };
  const std::string large = "123456789012345678901";
  const auto tool = [](const std::string& number) {
    return R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object",
        "properties":{"x":{"type":"integer","maximum":)" +
           number + "}}}}}]";
  };
  EXPECT_EQ(param(tool("18446744073709551615")), "read");
  EXPECT_EQ(param(tool(large)), "tools");
  EXPECT_EQ(param(R"("chat_template_kwargs":{"tools":{"a":[1,)" + large + "]}}"),
            "chat_template_kwargs");
  EXPECT_EQ(param(R"("metadata":{"\"tools\":":")" + large + R"(","n":)" + large +
                  R"(},"chat_template_kwargs":{})"),
            "read")
      << "no template writes it";
}

TEST(ParseMessages, NamesThePathOfTheInvalidValue) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("hi")", "messages"},
      {"[]", "messages"},
      {"[5]", "messages[0]"},
      {R"([{"content":"x"}])", "messages[0].role"},
      {R"([{"role":"alien","content":"x"}])", "messages[0].role"},
      {R"([{"role":"user"}])", "messages[0].content"},
      {R"([{"role":"user","content":5}])", "messages[0].content"},
      {R"([{"role":"user","content":[5]}])", "messages[0].content[0]"},
      {R"([{"role":"user","content":[{}]}])", "messages[0].content[0]"},
      {R"([{"role":"user","content":[{"type":"poem"}]}])", "messages[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":5}]}])", "messages[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text"},
      {R"([{"role":"user","content":"x"},{"role":"user","content":[{"type":"image_url","image_url":{"url":3}}]}])",
       "messages[1].content[0].image_url.url"},
      {R"([{"role":"user","content":[{"type":"image_url"}]}])", "messages[0].content[0].image_url"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":7}]}])",
       "messages[0].content[0].image_url"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":""}]}])",
       "messages[0].content[0].image_url"},
  };
  for (const auto& [list, path] : cases) {
    const auto prompt = messages(list);
    ASSERT_FALSE(prompt.ok()) << list;
    EXPECT_EQ(prompt.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(prompt.error().param, path) << prompt.error().message;
  }
}

TEST(ParseMessages, RefusesUnsupportedParts) {
  EXPECT_EQ(messages(R"([{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}])")
                .error()
                .code,
            ErrorCode::kNotImplemented);
  EXPECT_EQ(
      messages(R"([{"role":"assistant","content":"x","tool_calls":[{"id":"1"}]}])").error().param,
      "messages[0].tool_calls[0].function");
}

TEST(ParseMessages, ReadsToolCallsAndResults) {
  const auto prompt = messages(R"([{"role":"assistant","content":null,"tool_calls":[
      {"id":"1","type":"function","function":{"name":"f","arguments":"{\"b\": 1, \"a\": 2}"}},
      {"function":{"name":"g","arguments":""}}]},
    {"role":"tool","tool_call_id":"1","name":"f","content":"sunny"}])");
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  const ChatMessage& calls = prompt->messages[0];
  ASSERT_EQ(calls.tool_calls.size(), 2u);
  EXPECT_EQ(calls.tool_calls[0].id, "1");
  EXPECT_EQ(calls.tool_calls[0].name, "f");
  EXPECT_EQ(calls.tool_calls[0].arguments, R"({"b": 1, "a": 2})");
  EXPECT_EQ(calls.tool_calls[1].arguments, "{}");
  EXPECT_EQ(prompt->messages[1].tool_call_id, "1");
  EXPECT_EQ(prompt->messages[1].name, "f");
  const auto param = [](const std::string& call) {
    return messages(R"([{"role":"assistant","tool_calls":[)" + call + "]}]").error().param;
  };
  EXPECT_EQ(param(R"({"function":{"name":"f","arguments":"[1]"}})"),
            "messages[0].tool_calls[0].function.arguments");
  EXPECT_EQ(param(R"({"function":{"name":"f","arguments":{}}})"),
            "messages[0].tool_calls[0].function.arguments");
  EXPECT_EQ(param(R"({"type":"custom","function":{"name":"f"}})"),
            "messages[0].tool_calls[0].type");
  EXPECT_EQ(messages(R"([{"role":"user","content":"","tool_calls":[{}]}])").error().param,
            "messages[0].tool_calls");
}

TEST(ParseMessages, AllowsContinuingTheLastMessage) {
  const auto chat = [](const std::string& fields) {
    return parse_chat(R"({"messages":[{"role":"assistant","content":"x"}],)" + fields + "}", {});
  };
  const auto body = chat(R"("continue_final_message":true)");
  ASSERT_TRUE(body.ok());
  const auto& prompt = std::get<ChatPrompt>(body->prompts.at(0));
  EXPECT_TRUE(prompt.continue_final_message);
  EXPECT_EQ(prompt.add_generation_prompt, false);
  EXPECT_EQ(chat(R"("continue_final_message":true,"add_generation_prompt":true)").error().param,
            "continue_final_message");
}

TEST(ParseMessages, CountsMediaOverAllMessages) {
  const std::string two = R"([{"role":"user","content":[{"image_url":"a"}]},
                              {"role":"user","content":[{"image_url":"b"}]}])";
  EXPECT_TRUE(messages(two, {.images = 2}).ok());
  const auto refused = messages(two, {.images = 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "At most 1 image(s) may be provided in one prompt, not 2.");
  EXPECT_FALSE(messages(R"([{"role":"user","content":[{"video_url":"a"}]}])", {.videos = 0}).ok());
}

Result<ChatPrompt> with_parts(const std::string& parts, const std::string& fields = {}) {
  auto body = parse_chat(
      R"({"messages":[{"role":"user","content":[)" + parts + "]}]" + fields + "}", MediaLimits{});
  if (!body.ok()) return body.error();
  return std::get<ChatPrompt>(body->prompts.at(0));
}

// The settings of the message's only part.
MediaSettings settings_of_part(const std::string& part) {
  const auto prompt = with_parts(part, R"(,"mm_processor_kwargs":{"max_pixels":32,"fps":2})");
  EXPECT_TRUE(prompt.ok()) << part << ": " << prompt.error().message;
  if (!prompt.ok()) return {};
  EXPECT_EQ(prompt->media_settings, (MediaSettings{.max_pixels = 32, .fps = 2.0}));
  return std::get<MediaRef>(prompt->messages.front().parts.front()).settings;
}

TEST(ParseMessages, ReadsMediaSettingsPerPart) {
  const std::string beside =
      R"({"type":"image_url","image_url":{"url":"u"},"max_pixels":64,"min_pixels":16})";
  const std::string within = R"({"image_url":{"url":"u","max_pixels":64,"min_pixels":16}})";
  const MediaSettings bounds{.min_pixels = 16, .max_pixels = 64};
  EXPECT_EQ(settings_of_part(beside), bounds);
  EXPECT_EQ(settings_of_part(within), bounds);
  EXPECT_EQ(settings_of_part(R"({"image_url":{"url":"u","uuid":"x"},"max_pixels":null})"),
            MediaSettings{});
  EXPECT_EQ(settings_of_part(R"({"image_url":"u","resized_height":28,"resized_width":56})"),
            (MediaSettings{.resized_height = 28, .resized_width = 56}));
  EXPECT_EQ(settings_of_part(R"({"video_url":{"url":"u","total_pixels":9,"nframes":4,
                                 "min_frames":2,"max_frames":8,"video_start":1,"video_end":2.5}})"),
            (MediaSettings{.total_pixels = 9,
                           .frames = PartFrames{.fps = {},
                                                .nframes = 4,
                                                .min_frames = 2,
                                                .max_frames = 8,
                                                .video_start = 1.0,
                                                .video_end = 2.5}}));
  EXPECT_EQ(settings_of_part(R"({"video_url":"u","sample_fps":2,"raw_fps":30})"),
            MediaSettings{.sample_fps = 2.0});
  const auto two = with_parts(beside + R"(,{"video_url":"v","fps":1})");
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(std::get<MediaRef>(two->messages.front().parts[1]).settings,
            MediaSettings{.frames = PartFrames{.fps = 1.0}});
}

TEST(ParseMessages, NamesUnsupportedSettingsOfAPart) {
  for (const char* wrong :
       {R"({"image_url":"u","max_pixels":"64"})", R"({"image_url":"u","total_pixels":64})",
        R"({"image_url":"u","max_pixels":18446744073709551615})",
        R"({"image_url":{"url":"u","max_pixels":64},"max_pixels":64})",
        R"({"image_url":"u","fps":2})", R"({"video_url":"u","fps":"2"})",
        R"({"video_url":"u","nframes":4.5})", R"({"video_url":{"url":"u","raw_fps":[30]}})"}) {
    const auto prompt = with_parts(wrong);
    ASSERT_FALSE(prompt.ok()) << wrong;
    EXPECT_TRUE(prompt.error().param.starts_with("messages[0].content[0]")) << wrong;
  }
}

}  // namespace
}  // namespace valora::server
