#include "api/media_limits.h"

#include <gtest/gtest.h>

namespace valora {
namespace {

ChatMessage carrying(int images, int videos) {
  ChatMessage message{"user", {"look"}};
  for (int i = 0; i < images; ++i)
    message.parts.push_back(MediaRef{MediaRef::Kind::kImage, "data:,"});
  for (int i = 0; i < videos; ++i)
    message.parts.push_back(MediaRef{MediaRef::Kind::kVideo, "data:,"});
  return message;
}

TEST(CheckMedia, CountsMediaOfTheWholeConversationByModality) {
  const MediaLimits limits{.images = 3, .videos = 1};
  EXPECT_TRUE(check_media({.messages = {carrying(2, 1), carrying(1, 0)}}, limits).ok());
  const Status images = check_media({.messages = {carrying(2, 0), carrying(2, 0)}}, limits);
  EXPECT_EQ(images.error().message, "At most 3 image(s) may be provided in one prompt, not 4.");
  EXPECT_EQ(images.error().param, "messages");
  EXPECT_EQ(check_media({.messages = {carrying(0, 2)}}, limits).error().message,
            "At most 1 video(s) may be provided in one prompt, not 2.");
}

}  // namespace
}  // namespace valora
