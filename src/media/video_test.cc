#include "media/video.h"

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
