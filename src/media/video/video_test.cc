#include "media/video/video.h"

#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "media/testing/clips.h"

namespace valora::media {
namespace {

using testing::Clip;
using testing::encode_clip;

std::vector<uint8_t> ramp(int frames) {
  std::vector<uint8_t> levels(frames);
  for (int i = 0; i < frames; ++i) levels[i] = static_cast<uint8_t>(i * 5);
  return levels;
}

// A damaged header may state any number of frames.
constexpr int64_t kMostFrames = 1000;

FrameSampler every(int step) {
  return [step](const VideoInfo& info) -> Result<std::vector<int64_t>> {
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < std::min(info.frames, kMostFrames); i += step) indices.push_back(i);
    return indices;
  };
}

// The level of the bottom right pixel, outside the white corner.
int level(const Image& frame) { return frame.rgb.back(); }

bool is_white(const Image& frame, int x, int y) {
  return frame.rgb[(size_t(y) * frame.width + x) * 3] > 240;
}

class EveryContainer : public ::testing::TestWithParam<Clip> {};

TEST_P(EveryContainer, YieldsSampledFramesInOrder) {
  Clip clip = GetParam();
  clip.levels = ramp(23);
  const auto video = decode_video(encode_clip(clip), every(3), Limits{});
  ASSERT_TRUE(video.ok()) << video.error().message;
  EXPECT_EQ(video->info.frames, 23);
  EXPECT_NEAR(video->info.fps, 10, 1e-6);
  EXPECT_EQ(video->info.width, 64);
  EXPECT_EQ(video->info.height, 48);
  ASSERT_EQ(video->frames.size(), 8u);
  const bool lossless = std::string(clip.codec) == "ffv1";
  for (size_t i = 0; i < video->frames.size(); ++i) {
    const Image& frame = video->frames[i];
    ASSERT_EQ(frame.rgb.size(), size_t(64 * 48 * 3));
    EXPECT_NEAR(level(frame), int(i) * 15, lossless ? 0 : 3);
    EXPECT_TRUE(is_white(frame, 4, 4));
  }
}

std::string clip_name(const ::testing::TestParamInfo<Clip>& info) {
  return std::string(info.param.container) + "_" + info.param.codec;
}

INSTANTIATE_TEST_SUITE_P(Video, EveryContainer,
                         ::testing::Values(Clip{"avi", "ffv1"}, Clip{"matroska", "ffv1"},
                                           Clip{"mp4", "mpeg4", AV_PIX_FMT_YUV420P},
                                           Clip{"avi", "mjpeg", AV_PIX_FMT_YUVJ420P},
                                           Clip{"mpegts", "mpeg4", AV_PIX_FMT_YUV420P}),
                         clip_name);

// Clips with key frames far apart, with frames that are decoded before those shown before them, and
// with packets that do not tell the frames: no times, wrong marks.
class EveryGroup : public ::testing::TestWithParam<Clip> {};

FrameSampler these(std::vector<int64_t> indices) {
  return [=](const VideoInfo&) -> Result<std::vector<int64_t>> { return indices; };
}

TEST_P(EveryGroup, PartsEqualTheWhole) {
  Clip clip = GetParam();
  clip.levels = ramp(50);
  const Bytes bytes = encode_clip(clip);
  const auto whole = decode_video(bytes, every(1), Limits{});
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  ASSERT_EQ(whole->frames.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_NEAR(level(whole->frames[i]), i * 5, 9) << i;
  const std::vector<std::vector<int64_t>> choices = {{49},         {11, 12, 13},    {0, 24, 49},
                                                     {23, 23, 36}, {5, 17, 29, 41}, {47, 48}};
  for (const auto& chosen : choices) {
    const auto part = decode_video(bytes, these(chosen), Limits{});
    ASSERT_TRUE(part.ok()) << part.error().message;
    EXPECT_EQ(part->indices, chosen);
    EXPECT_EQ(part->info.frames, 50);
    EXPECT_EQ(part->info.fps, whole->info.fps);
    ASSERT_EQ(part->frames.size(), chosen.size());
    for (size_t i = 0; i < chosen.size(); ++i)
      EXPECT_EQ(part->frames[i].rgb, whole->frames[chosen[i]].rgb) << "frame " << chosen[i];
  }
}

Clip grouped(const char* container, const char* codec, int b_frames, bool wrong_marks = false) {
  Clip clip{container, codec, AV_PIX_FMT_YUV420P};
  clip.b_frames = b_frames;
  clip.every_packet_key = wrong_marks;
  return clip;
}

INSTANTIATE_TEST_SUITE_P(
    Video, EveryGroup,
    ::testing::Values(grouped("mp4", "mpeg4", 0), grouped("mp4", "mpeg4", 2),
                      grouped("mp4", "libx264", 0), grouped("mp4", "libx264", 3),
                      grouped("matroska", "libx264", 2), grouped("mpegts", "libx264", 2),
                      grouped("mpegts", "mpeg2video", 2), grouped("matroska", "libvpx", 0),
                      grouped("matroska", "libvpx-vp9", 0), grouped("avi", "mpeg4", 2),
                      grouped("h264", "libx264", 2), grouped("matroska", "mpeg4", 2, true),
                      grouped("matroska", "libx264", 2, true)),
    [](const auto& info) {
      std::string name = clip_name(info) + "_" + std::to_string(info.param.b_frames) +
                         (info.param.every_packet_key ? "_wrong" : "");
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(Video, DecodesOnlyGroupsOfSampledFrames) {
  Clip clip{"mp4", "libx264", AV_PIX_FMT_YUV420P};
  clip.levels.assign(200, 80);
  clip.key_interval = 10;
  const Limits few{.max_decoded_frames = 25};
  const auto video = decode_video(encode_clip(clip), these({35, 198}), few);
  ASSERT_TRUE(video.ok()) << video.error().message;
  EXPECT_EQ(video->frames.size(), 2u);
  // Groups that are too long are refused at once, and the message says of what there are too many.
  clip.key_interval = 200;
  const Bytes long_group = encode_clip(clip);
  const auto many = decode_video(long_group, these({198}), few);
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.error().code, ErrorCode::kPayloadTooLarge);
  EXPECT_NE(many.error().message.find("frames of the video"), std::string::npos)
      << many.error().message;
  clip = {"mp4", "mjpeg", AV_PIX_FMT_YUVJ420P, 1024, 1024};
  clip.levels.assign(20, 80);
  const auto large = decode_video(encode_clip(clip), every(1), Limits{.max_decoded_frames = 30});
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().code, ErrorCode::kPayloadTooLarge);
  EXPECT_NE(large.error().message.find("1024 x 1024 pixels"), std::string::npos)
      << large.error().message;
  const auto late =
      decode_video(long_group, these({198}), Limits{.max_decode_time = std::chrono::seconds(-1)});
  ASSERT_FALSE(late.ok());
  EXPECT_NE(late.error().message.find("seconds"), std::string::npos) << late.error().message;
}

TEST(Video, RateIsTheAverage) {
  // 20 frames in a second, then ten more, one every half second.
  for (const char* container : {"mp4", "matroska"}) {
    Clip clip{container, "mpeg4", AV_PIX_FMT_YUV420P};
    clip.levels = ramp(30);
    clip.frame_rate = 20;
    for (int i = 0; i < 30; ++i) clip.times.push_back(i < 20 ? i : 20 + (i - 20) * 10);
    const auto video = decode_video(encode_clip(clip), every(1), Limits{});
    ASSERT_TRUE(video.ok()) << video.error().message;
    EXPECT_EQ(video->info.frames, 30);
    if (std::string(container) == "mp4") {
      EXPECT_NEAR(video->info.fps, 30 / 5.55, 0.01);
    }
    EXPECT_EQ(video->frames.size(), 30u);
  }
}

TEST(Video, OddSizesAreConvertedWhole) {
  for (const int width : {17, 31, 33, 65, 127}) {
    Clip clip{"avi", "mjpeg", AV_PIX_FMT_YUVJ420P, width, 35};
    clip.levels = {100, 200};
    const auto video = decode_video(encode_clip(clip), every(1), Limits{});
    ASSERT_TRUE(video.ok()) << video.error().message;
    ASSERT_EQ(video->frames.size(), 2u);
    for (int y = 17; y < 35; ++y)
      EXPECT_NEAR(video->frames[1].rgb[(size_t(y) * width + width - 1) * 3], 200, 3)
          << width << " row " << y;
  }
}

TEST(Video, StoredRotationIsApplied) {
  Clip clip{"mp4", "mpeg4", AV_PIX_FMT_YUV420P};
  clip.levels = {50, 50};
  struct Case {
    int degrees, width, height, white_x, white_y;
  };
  for (const Case c :
       {Case{0, 64, 48, 4, 4}, {90, 48, 64, 43, 4}, {180, 64, 48, 59, 43}, {270, 48, 64, 4, 59}}) {
    clip.clockwise_rotation = c.degrees;
    VideoInfo seen;
    const auto video = decode_video(
        encode_clip(clip),
        [&](const VideoInfo& info) {
          seen = info;
          return every(1)(info);
        },
        Limits{});
    ASSERT_TRUE(video.ok()) << video.error().message;
    EXPECT_EQ(seen.width, c.width);
    EXPECT_EQ(video->frames[0].width, c.width) << c.degrees;
    EXPECT_EQ(video->frames[0].height, c.height) << c.degrees;
    EXPECT_TRUE(is_white(video->frames[0], c.white_x, c.white_y)) << c.degrees;
  }
}

TEST(Video, TruncatedFileYieldsDecodableFrames) {
  Clip clip{"avi", "mjpeg", AV_PIX_FMT_YUVJ420P};
  clip.levels = ramp(40);
  Bytes bytes = encode_clip(clip);
  bytes.resize(bytes.size() / 2);
  int64_t asked = 0;
  const auto video = decode_video(
      bytes,
      [&](const VideoInfo& info) {
        asked = info.frames;
        return every(1)(info);
      },
      Limits{});
  ASSERT_TRUE(video.ok()) << video.error().message;
  EXPECT_GT(video->info.frames, 5);
  EXPECT_LT(video->info.frames, 40);
  EXPECT_EQ(asked, video->info.frames) << "sampled anew from the true count";
  EXPECT_EQ(video->frames.size(), size_t(video->info.frames));
}

TEST(Video, RefusesNonVideos) {
  EXPECT_EQ(decode_video({}, every(1), Limits{}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(decode_video(testing::encode_silence(), every(1), Limits{}).error().code,
            ErrorCode::kInvalidArgument);
  Clip no_frames;
  EXPECT_EQ(decode_video(encode_clip(no_frames), every(1), Limits{}).error().code,
            ErrorCode::kInvalidArgument);
  std::mt19937 random(4);
  for (int i = 0; i < 50; ++i) {
    Bytes noise(random() % 5000 + 1);
    for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
    EXPECT_FALSE(decode_video(noise, every(1), Limits{}).ok());
  }
}

TEST(Video, NeverOpensFilesNamedInContent) {
  for (const std::string text : {"#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n",
                                 "ffconcat version 1.0\nfile '/etc/hostname'\n"}) {
    const auto video = decode_video(Bytes(text.begin(), text.end()), every(1), Limits{});
    ASSERT_FALSE(video.ok());
    EXPECT_EQ(video.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Video, EnforcesLimits) {
  Clip clip;
  clip.levels = ramp(30);
  const Bytes bytes = encode_clip(clip);
  const auto code = [&](const Limits& limits) {
    const auto video = decode_video(bytes, every(1), limits);
    EXPECT_FALSE(video.ok());
    return video.ok() ? ErrorCode::kInternal : video.error().code;
  };
  ASSERT_TRUE(decode_video(bytes, every(1), Limits{}).ok());
  EXPECT_EQ(code({.max_pixels = 64 * 48 - 1}), ErrorCode::kPayloadTooLarge);
  EXPECT_EQ(code({.max_video_bytes = bytes.size() - 1}), ErrorCode::kPayloadTooLarge);
  EXPECT_EQ(code({.max_frames = 29}), ErrorCode::kPayloadTooLarge);
  EXPECT_EQ(code({.max_video_pixels = 30 * 64 * 48 - 1}), ErrorCode::kPayloadTooLarge);
  EXPECT_EQ(code({.max_decoded_frames = 29}), ErrorCode::kPayloadTooLarge);
  EXPECT_EQ(code({.max_decode_time = std::chrono::seconds(-1)}), ErrorCode::kPayloadTooLarge);
}

TEST(Video, StopEndsDecodingAtNextFrame) {
  Clip clip;
  clip.levels.assign(20, 99);
  std::stop_source stop;
  const FrameSampler last = [&](const VideoInfo& info) -> Result<std::vector<int64_t>> {
    stop.request_stop();
    return std::vector<int64_t>{info.frames - 1};
  };
  const auto stopped = decode_video(encode_clip(clip), last, Limits{}, stop.get_token());
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
}

TEST(Video, PropagatesSamplerError) {
  Clip clip;
  clip.levels = ramp(3);
  const FrameSampler refusing = [](const VideoInfo&) -> Result<std::vector<int64_t>> {
    return unprocessable("no");
  };
  EXPECT_EQ(decode_video(encode_clip(clip), refusing, Limits{}).error().code,
            ErrorCode::kUnprocessable);
}

TEST(Video, DamagedFilesNeverCrash) {
  std::mt19937 random(5);
  for (Clip clip : {Clip{"mp4", "mpeg4", AV_PIX_FMT_YUV420P}, Clip{"matroska", "ffv1"},
                    Clip{"avi", "mjpeg", AV_PIX_FMT_YUVJ420P}}) {
    clip.levels = ramp(6);
    const Bytes valid = encode_clip(clip);
    for (int i = 0; i < 60; ++i) {
      Bytes bytes = valid;
      for (int k = 0; k < 1 + i % 8; ++k)
        bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
      const auto video =
          decode_video(bytes, every(1), Limits{.max_pixels = 1 << 20, .max_decoded_frames = 1000});
      EXPECT_TRUE(!video.ok() || video->frames.size() == size_t(video->info.frames));
    }
  }
}

}  // namespace
}  // namespace valora::media
