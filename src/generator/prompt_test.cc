#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"
#include "base/video.h"
#include "generator/evaluator.h"
#include "media/fetch/fetch.h"

namespace valora::generator {
namespace {

using valora::testing::TempDir;

std::vector<ContentPart> parts_of(const Prompt& prompt) {
  const auto& messages = std::get<ChatPrompt>(prompt).messages;
  EXPECT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages.front().role, "user");
  return messages.front().parts;
}

TEST(PromptOf, PutsMediaBeforeTheQuestionInOneTurn) {
  Sample sample;
  sample.media = {{Medium::Kind::kImage, {"/data/50% off.png"}},
                  {Medium::Kind::kVideo, {"/data/film.mp4"}}};
  sample.question = "What is this?";
  const auto prompt = prompt_of(sample);
  ASSERT_TRUE(prompt.ok());
  const auto parts = parts_of(*prompt);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(std::get<MediaRef>(parts[0]).kind, MediaRef::Kind::kImage);
  EXPECT_EQ(std::get<MediaRef>(parts[0]).url, "file:///data/50%25 off.png");
  EXPECT_EQ(std::get<MediaRef>(parts[1]).kind, MediaRef::Kind::kVideo);
  EXPECT_EQ(std::get<MediaRef>(parts[1]).url, "file:///data/film.mp4");
  EXPECT_EQ(std::get<std::string>(parts[2]), "What is this?");
  EXPECT_FALSE(std::get<ChatPrompt>(*prompt).add_generation_prompt);
}

TEST(PromptOf, FindsAFileByItsUrl) {
  const TempDir dir;
  Sample sample;
  sample.media = {{Medium::Kind::kImage, {dir.write("%41 ü#?.png", "bytes")}}};
  const auto prompt = prompt_of(sample);
  media::FetchPolicy policy;
  policy.allowed_local_path = dir.path();
  const auto items = media::fetch(std::get<MediaRef>(parts_of(*prompt)[0]).url,
                                  media::MediaKind::kImage, 100, policy);
  ASSERT_TRUE(items.ok()) << items.error().message;
  EXPECT_EQ(std::string(items->front().begin(), items->front().end()), "bytes");
}

TEST(PromptOf, JoinsFramesIntoOneList) {
  const TempDir dir;
  Sample sample;
  sample.media = {
      {Medium::Kind::kVideo, {dir.write("0.jpg", "one"), dir.write("1.jpg", "second")}}};
  const auto prompt = prompt_of(sample);
  ASSERT_TRUE(prompt.ok());
  const std::string url = std::get<MediaRef>(parts_of(*prompt)[0]).url;
  EXPECT_TRUE(is_frame_list(url));
  const auto frames = media::fetch(url, media::MediaKind::kVideo, 100, {});
  ASSERT_TRUE(frames.ok()) << frames.error().message;
  ASSERT_EQ(frames->size(), 2u);
  EXPECT_EQ(std::string((*frames)[1].begin(), (*frames)[1].end()), "second");
}

TEST(PromptOf, NamesTheInvalidFrame) {
  const TempDir dir;
  const auto refused = [&](const std::string& second) {
    Sample sample;
    sample.media = {{Medium::Kind::kVideo, {dir.write("0.jpg", "one"), second}}};
    return prompt_of(sample).error().message;
  };
  EXPECT_NE(refused(dir.file("missing.jpg")).find("missing.jpg does not exist"), std::string::npos);
  EXPECT_NE(refused(dir.write("empty.jpg", "")).find("empty.jpg is empty"), std::string::npos);
  Sample nothing;
  nothing.media = {{Medium::Kind::kVideo, {}}};
  EXPECT_EQ(prompt_of(nothing).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace valora::generator
