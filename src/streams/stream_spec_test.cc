#include "streams/stream_spec.h"

#include <gtest/gtest.h>

namespace valora::streams {
namespace {

std::string param(const std::string& text) {
  const auto spec = parse_stream_spec(text);
  return spec.ok() ? "no error" : spec.error().param;
}

TEST(StreamSpecs, AreRead) {
  const auto spec = parse_stream_spec(R"({"name":"gate","source":"rtsp://u:p@cam/1","fps":0.5,
      "window":{"seconds":4,"slide":8,"as":"pictures"},"max_tokens":8,
      "skills":["people",{"model":"base","name":"door","question":"Open?","every":5,
        "event":{"when":{"contains":"yes"},"start_after":2}}],
      "webhook":{"url":"https://x:y@hook/","secret":"s"}})");
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->fps, 0.5);
  EXPECT_EQ(spec->window.seconds, 4);
  EXPECT_EQ(spec->window.slide, 8u);
  EXPECT_TRUE(spec->window.as_pictures);
  ASSERT_EQ(spec->skills.size(), 2u);
  EXPECT_EQ(spec->skills[1].name, "door");
  EXPECT_EQ(spec->skills[1].every, 5);
  EXPECT_EQ(spec->skills[1].start_after, 2);
  EXPECT_EQ(spec->skills[1].end_after, 2);
  EXPECT_TRUE(spec->skills[1].when);
  EXPECT_EQ(chat_text(*spec, {1}, OrderedJson::array()),
            R"({"max_tokens":8,"skills":[{"model":"base","name":"door","question":"Open?"}],)"
            R"("messages":[{"role":"user","content":[]}]})");
  EXPECT_EQ(chat_text(*spec, {0}, OrderedJson::array()),
            R"({"max_tokens":8,"skills":["people"],"messages":[{"role":"user","content":[]}]})");
  const std::string shown = public_json(*spec).dump();
  EXPECT_NE(shown.find(R"("source":"rtsp://***@cam/1")"), shown.npos);
  EXPECT_NE(shown.find(R"("url":"https://***@hook/","secret":"***")"), shown.npos);
  EXPECT_EQ(shown.find("u:p"), shown.npos);
}

TEST(StreamSpecs, FaultsAreNamed) {
  const auto with = [](const std::string& fields) {
    return param(R"({"source":"push","skills":["a"],)" + fields + "}");
  };
  EXPECT_EQ(param(R"({"skills":["a"]})"), "source");
  EXPECT_EQ(param(R"({"source":"push"})"), "skills");
  EXPECT_EQ(param(R"({"source":"push","skills":[]})"), "skills");
  EXPECT_EQ(param(R"({"source":"push","skills":[{}]})"), "skills[0]");
  EXPECT_EQ(param(R"({"source":"push","skills":["a","a"]})"), "skills[1]");
  EXPECT_EQ(param(R"({"source":"push","skills":[{"model":"a","every":-1}]})"), "skills[0].every");
  EXPECT_EQ(param(R"({"source":"push","skills":[{"model":"a","event":{}}]})"),
            "skills[0].event.when");
  EXPECT_EQ(param(R"({"source":"push","skills":[{"model":"a","event":{"when":{"label":7}}}]})"),
            "skills[0].event.when.label");
  EXPECT_EQ(with(R"("fps":0)"), "fps");
  EXPECT_EQ(with(R"("window":3)"), "window");
  EXPECT_EQ(with(R"("window":{"frames":65})"), "window.frames");
  EXPECT_EQ(with(R"("window":{"frames":2,"seconds":2})"), "window");
  EXPECT_EQ(with(R"("window":{"frames":33,"slide":33})"), "window.slide");
  EXPECT_EQ(with(R"("window":{"frames":2,"slide":0})"), "window.slide");
  EXPECT_EQ(with(R"("window":{"frames":2,"as":"audio"})"), "window.as");
  EXPECT_EQ(with(R"("window":{"frames":2,"step":2})"), "window.step");
  EXPECT_EQ(with(R"("window":{"frames":32,"slide":33})"), "no error");
  EXPECT_EQ(with(R"("realtime":false)"), "realtime");
  EXPECT_EQ(with(R"("key_frames":true)"), "key_frames");
  EXPECT_EQ(with(R"("webhook":{"url":"ftp://x"})"), "webhook.url");
  EXPECT_EQ(with(R"("webhook":{})"), "url");
  EXPECT_EQ(with(R"("messages":[])"), "messages");
  EXPECT_EQ(with(R"("window":{"frames":64})"), "no error");
}

TEST(StreamSpecs, StillFramesAreSkippedOnRequest) {
  const auto rule = [](const std::string& value) {
    const std::string field = value.empty() ? "" : R"(,"skip_still":)" + value;
    return parse_stream_spec(R"({"source":"push","skills":["a"])" + field + "}");
  };
  EXPECT_FALSE(rule("")->still);
  EXPECT_FALSE(rule("false")->still);
  EXPECT_FALSE(rule("null")->still);
  EXPECT_EQ(rule("true")->still->threshold, StillRule{}.threshold);
  EXPECT_EQ(rule("true")->still->at_most, 60);
  EXPECT_EQ(rule(R"({"threshold":2.5})")->still->threshold, 2.5);
  EXPECT_EQ(rule(R"({"threshold":2.5})")->still->at_most, 60);
  EXPECT_EQ(rule(R"({"at_most":7})")->still->at_most, 7);
  EXPECT_FALSE(rule("true")->shared.contains("skip_still")) << "no field of chats";
  EXPECT_EQ(rule("1").error().param, "skip_still");
  EXPECT_EQ(rule(R"({"threshold":256})").error().param, "skip_still.threshold");
  EXPECT_EQ(rule(R"({"at_most":-1})").error().param, "skip_still.at_most");
  EXPECT_EQ(rule(R"({"motion":1})").error().param, "skip_still.motion");
}

TEST(StreamSpecs, BlocksOfSourcesMayStand) {
  const auto spec = [](const std::string& source, const std::string& value) {
    return parse_stream_spec(R"({"source":")" + source + R"(","skills":["a"],"still_blocks":)" +
                             value + "}");
  };
  EXPECT_FALSE(spec("rtsp://a", "false")->still_blocks);
  EXPECT_EQ(spec("rtsp://a", R"({"threshold":3})")->still_blocks->threshold, 3);
  EXPECT_FALSE(spec("rtsp://a", "true")->still);
  EXPECT_FALSE(spec("rtsp://a", "true")->shared.contains("still_blocks")) << "no field of chats";
  EXPECT_EQ(spec("push", "true").error().param, "still_blocks");
  EXPECT_EQ(spec("rtsp://a", R"({"at_most":-1})").error().param, "still_blocks.at_most");
}

TEST(StreamSpecs, PasswordsAreHidden) {
  EXPECT_EQ(without_password("rtsp://a:b@c/d@e"), "rtsp://***@c/d@e");
  EXPECT_EQ(without_password("rtsp://a@b@c"), "rtsp://***@c");
  EXPECT_EQ(without_password("rtsp://c/d@e"), "rtsp://c/d@e");
  EXPECT_EQ(without_password("file:///a@b"), "file:///a@b");
}

}  // namespace
}  // namespace valora::streams
