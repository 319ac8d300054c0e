#include "media/video/live_decoder.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"
#include "media/testing/clips.h"
#include "media/video/live_video.h"
#include "media/video/video_decoder.h"

namespace valora::media {
namespace {

constexpr int kFrames = 20, kInterval = 5;

testing::Clip grey_clip(int b_frames) {
  testing::Clip clip{.container = "matroska", .codec = "libx264", .format = AV_PIX_FMT_YUV420P};
  for (int i = 0; i < kFrames; ++i) clip.levels.push_back(static_cast<uint8_t>(40 + 8 * i));
  clip.key_interval = kInterval;
  clip.b_frames = b_frames;
  return clip;
}

// libav is offered its format, but cannot set it up.
std::shared_ptr<const HardwareDevice> absent_device() {
  return std::make_shared<const HardwareDevice>(AV_HWDEVICE_TYPE_VAAPI, nullptr);
}

std::vector<Image> images_of(const testing::Clip& clip, bool key_frames_only,
                             std::shared_ptr<const HardwareDevice> device) {
  const valora::testing::TempDir folder;
  FetchPolicy policy;
  policy.allowed_local_path = folder.path();
  const auto video =
      LiveVideo::open("file://" + testing::write_clip(clip, folder.path()), policy, Limits{},
                      {.patience = std::chrono::milliseconds(5000),
                       .key_frames_only = key_frames_only,
                       .device = std::move(device)},
                      {});
  EXPECT_TRUE(video.ok()) << video.error().message;
  std::vector<Image> images;
  while (video.ok()) {
    const auto more = (*video)->next();
    EXPECT_TRUE(more.ok()) << more.error().message;
    if (!more.ok() || !*more) break;
    auto image = (*video)->image();
    EXPECT_TRUE(image.ok()) << image.error().message;
    if (image.ok()) images.push_back(std::move(*image));
  }
  return images;
}

void expect_equal(const std::vector<Image>& images, const std::vector<Image>& expected) {
  ASSERT_EQ(images.size(), expected.size());
  for (size_t i = 0; i < images.size(); ++i) EXPECT_EQ(images[i].rgb, expected[i].rgb) << i;
}

// A clip with a LiveDecoder on a device that falls back when it is told to.
class ReadClip {
 public:
  ReadClip(int b_frames, LiveDecoder::Settings settings) : alone_(settings.alone) {
    const std::string path = testing::write_clip(grey_clip(b_frames), folder_.path());
    EXPECT_GE(avformat_open_input(&format_, path.c_str(), nullptr, nullptr), 0);
    EXPECT_GE(avformat_find_stream_info(format_, nullptr), 0);
    const AVCodec* codec = nullptr;
    stream_ = choose_video(format_, &codec);
    EXPECT_GE(decoder.open(codec, *stream_, Limits{}, std::move(settings)), 0);
  }
  ~ReadClip() { avformat_close_input(&format_); }

  // The frames by number, as seen() is told them; it may make the decoder fall back.
  std::vector<int> frames(const std::function<void(int)>& seen = [](int) {}) {
    std::vector<int> numbers;
    const std::unique_ptr<AVPacket, FreeLibav> packet(av_packet_alloc());
    const std::unique_ptr<AVFrame, FreeLibav> frame(av_frame_alloc());
    for (bool more = true; more;) {
      av_packet_unref(packet.get());
      more = av_read_frame(format_, packet.get()) >= 0;
      if (more && alone_ && !(packet->flags & AV_PKT_FLAG_KEY)) continue;
      decoder.send(more ? packet.get() : nullptr);
      while (decoder.receive(frame.get())) {
        const double seconds =
            static_cast<double>(frame->best_effort_timestamp) * av_q2d(stream_->time_base);
        numbers.push_back(static_cast<int>(std::lround(seconds * 10)));
        seen(numbers.back());
      }
    }
    return numbers;
  }

  LiveDecoder decoder;

 private:
  const valora::testing::TempDir folder_;
  const bool alone_;
  AVFormatContext* format_ = nullptr;
  AVStream* stream_ = nullptr;
};

std::vector<int> first_frames() {
  std::vector<int> all(kFrames);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(VideoDecoderOption, TakesTypesThatDecode) {
  const auto software = open_video_decoder("software");
  ASSERT_TRUE(software.ok());
  EXPECT_EQ(*software, nullptr);
  // libavutil knows opencl, but no decoder uses it.
  for (const char* name : {"", "nonsense", "vaap", "opencl", "software:1", "auto:1", ":"}) {
    const auto opened = open_video_decoder(name);
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument) << name;
    EXPECT_NE(opened.error().message.find("software, auto"), std::string::npos);
  }
}

TEST(VideoDecoderOption, SaysWhyADeviceCannotBeOpened) {
  const auto known = video_decoders();
  if (std::ranges::find(known, "vaapi") == known.end()) GTEST_SKIP() << "libav has no VA-API";
  const auto opened = open_video_decoder("vaapi:/dev/valora-no-such-device");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable);
  for (const char* part : {"vaapi:/dev/valora-no-such-device cannot be opened: ",
                           "No VA display found for device", "software, auto"})
    EXPECT_NE(opened.error().message.find(part), std::string::npos) << opened.error().message;
}

TEST(VideoDecoderOption, AutoDecodesWithAndWithoutADevice) {
  const auto opened = open_video_decoder("auto");
  ASSERT_TRUE(opened.ok());
  const auto images = images_of(grey_clip(0), false, *opened);
  ASSERT_EQ(images.size(), kFrames);
  for (int i = 0; i < kFrames; ++i) EXPECT_NEAR(images[i].rgb.back(), 40 + 8 * i, 4);
}

TEST(ChooseFormat, TakesTheHardwaresElseTheFirstInMemory) {
  const auto chosen = [](std::vector<AVPixelFormat> offered) {
    offered.push_back(AV_PIX_FMT_NONE);
    return choose_format(offered.data(), AV_PIX_FMT_VAAPI);
  };
  EXPECT_EQ(chosen({AV_PIX_FMT_VDPAU, AV_PIX_FMT_VAAPI, AV_PIX_FMT_YUV420P}), AV_PIX_FMT_VAAPI);
  EXPECT_EQ(chosen({AV_PIX_FMT_YUV420P, AV_PIX_FMT_VAAPI}), AV_PIX_FMT_VAAPI);
  EXPECT_EQ(chosen({AV_PIX_FMT_VDPAU, AV_PIX_FMT_CUDA, AV_PIX_FMT_YUV422P10, AV_PIX_FMT_YUV420P}),
            AV_PIX_FMT_YUV422P10);
  EXPECT_EQ(chosen({AV_PIX_FMT_VDPAU}), AV_PIX_FMT_NONE);
  EXPECT_EQ(chosen({}), AV_PIX_FMT_NONE);
}

TEST(LiveOnADevice, ThatIsNotThereEqualsSoftware) {
  for (const int b_frames : {0, 2})
    for (const bool key_frames_only : {false, true}) {
      const auto expected = images_of(grey_clip(b_frames), key_frames_only, nullptr);
      EXPECT_EQ(expected.size(), key_frames_only ? kFrames / kInterval : kFrames);
      expect_equal(images_of(grey_clip(b_frames), key_frames_only, absent_device()), expected);
    }
  const testing::Clip lossless{.levels = {10, 200}};  // of a codec that no device decodes
  expect_equal(images_of(lossless, false, absent_device()), images_of(lossless, false, nullptr));
}

TEST(LiveDecoder, GoesOnInSoftwareWithoutALostFrame) {
  for (const int b_frames : {0, 2})
    for (const int at : {0, 3, 6, 12, kFrames - 1})
      for (const bool again : {false, true}) {
        ReadClip clip(b_frames, {.device = absent_device()});
        bool fallen = false;
        const auto frames = clip.frames([&](int number) {
          if (number == at && !std::exchange(fallen, true)) clip.decoder.fall_back("test", again);
        });
        std::vector<int> expected = first_frames();
        if (again) expected.insert(expected.begin() + at, at);
        EXPECT_EQ(frames, expected) << b_frames << " " << at << " " << again;
        EXPECT_FALSE(clip.decoder.lost());
      }
}

TEST(LiveDecoder, GoesOnInSoftwareWithKeyFramesAlone) {
  for (const bool again : {false, true}) {
    ReadClip clip(2, {.device = absent_device(), .alone = true});
    bool fallen = false;
    const auto frames = clip.frames([&](int number) {
      if (number == 10 && !std::exchange(fallen, true)) clip.decoder.fall_back("test", again);
    });
    EXPECT_EQ(frames,
              again ? std::vector<int>({0, 5, 10, 10, 15}) : std::vector<int>({0, 5, 10, 15}));
  }
}

TEST(LiveDecoder, IsLostIfItCouldNotKeepThePackets) {
  ReadClip clip(0, {.device = absent_device(), .most_kept_bytes = 1});
  const auto frames = clip.frames([&](int number) {
    if (number == 7) clip.decoder.fall_back("test", false);
  });
  EXPECT_TRUE(clip.decoder.lost());
  EXPECT_EQ(frames, std::vector<int>({0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(LiveDecoder, GivesUpADeviceThatGivesNoFrames) {
  for (const bool alone : {false, true}) {
    ReadClip clip(0, {.device = absent_device(), .alone = alone});
    const std::unique_ptr<AVPacket, FreeLibav> damaged(av_packet_alloc());
    const std::unique_ptr<AVFrame, FreeLibav> frame(av_frame_alloc());
    ASSERT_GE(av_new_packet(damaged.get(), 100), 0);
    std::fill_n(damaged->data, damaged->size, uint8_t{0});
    damaged->flags = AV_PKT_FLAG_KEY;
    for (int i = 0; i < (alone ? 5 : 65); ++i) {
      clip.decoder.send(damaged.get());
      EXPECT_FALSE(clip.decoder.receive(frame.get()));
    }
    EXPECT_EQ(clip.frames(), alone ? std::vector<int>({0, 5, 10, 15}) : first_frames());
    clip.decoder.fall_back("test", false);  // nothing is left to fall back to
    EXPECT_TRUE(clip.decoder.lost());
  }
}

// A device's formats hold the same values in another order, or with more bits.
TEST(RgbConverter, EqualsSoftwareOnTheFormatsOfDevices) {
  constexpr int kWidth = 50, kHeight = 38;
  const auto filled = [&](AVPixelFormat format, AVColorRange range, AVColorSpace matrix) {
    std::unique_ptr<AVFrame, FreeLibav> frame(av_frame_alloc());
    frame->width = kWidth;
    frame->height = kHeight;
    frame->format = format;
    frame->color_range = range;
    frame->colorspace = matrix;
    EXPECT_GE(av_frame_get_buffer(frame.get(), 0), 0);
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x)
        frame->data[0][y * frame->linesize[0] + x] =
            static_cast<uint8_t>(16 + (7 * x + 3 * y) % 220);
    for (int y = 0; y < kHeight / 2; ++y)
      for (int x = 0; x < kWidth / 2; ++x) {
        const auto u = static_cast<uint8_t>(60 + 5 * x), v = static_cast<uint8_t>(200 - 6 * y);
        if (format == AV_PIX_FMT_NV12) {
          uint8_t* const pair = frame->data[1] + y * frame->linesize[1] + 2 * x;
          pair[0] = u, pair[1] = v;
        } else {
          frame->data[1][y * frame->linesize[1] + x] = u;
          frame->data[2][y * frame->linesize[2] + x] = v;
        }
      }
    return frame;
  };
  Image last;
  for (const AVColorRange range : {AVCOL_RANGE_MPEG, AVCOL_RANGE_JPEG})
    for (const AVColorSpace matrix : {AVCOL_SPC_UNSPECIFIED, AVCOL_SPC_BT709}) {
      RgbConverter converter;
      const auto planar = converter.to_rgb(*filled(AV_PIX_FMT_YUV420P, range, matrix), 1, Limits{});
      const auto paired = converter.to_rgb(*filled(AV_PIX_FMT_NV12, range, matrix), 1, Limits{});
      ASSERT_TRUE(planar.ok() && paired.ok());
      EXPECT_EQ(paired->rgb, planar->rgb);
      EXPECT_NE(planar->rgb, last.rgb);
      last = *planar;
    }
}

}  // namespace
}  // namespace valora::media
