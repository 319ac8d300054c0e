#include "media/video/live_video.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"
#include "media/testing/clips.h"

namespace valora::media {
namespace {

using std::chrono::milliseconds;

Result<std::unique_ptr<LiveVideo>> open_camera(const std::string& url,
                                               std::vector<std::string> devices) {
  FetchPolicy policy;
  policy.video_devices = std::move(devices);
  return LiveVideo::open(url, policy, Limits{}, {.patience = milliseconds(5000)}, {});
}

Error refused(const std::string& url, std::vector<std::string> devices = {"/dev/null"}) {
  const auto opened = open_camera(url, std::move(devices));
  return opened.ok() ? Error{ErrorCode::kInternal, "opened", {}} : opened.error();
}

// The numbers of the frames that are read, by their times.
std::vector<int> frames_read(bool key_frames_only, int b_frames = 0) {
  testing::Clip clip{.container = "matroska", .codec = "libx264", .format = AV_PIX_FMT_YUV420P};
  clip.levels.assign(20, 80);
  clip.key_interval = 5;
  clip.b_frames = b_frames;
  const valora::testing::TempDir folder;
  FetchPolicy policy;
  policy.allowed_local_path = folder.path();
  const auto video =
      LiveVideo::open("file://" + testing::write_clip(clip, folder.path()), policy, Limits{},
                      {.patience = milliseconds(5000), .key_frames_only = key_frames_only}, {});
  EXPECT_TRUE(video.ok()) << video.error().message;
  std::vector<int> frames;
  while (video.ok()) {
    const auto more = (*video)->next();
    EXPECT_TRUE(more.ok()) << more.error().message;
    if (!more.ok() || !*more) break;
    const auto image = (*video)->image();
    EXPECT_TRUE(image.ok() && std::abs(image->rgb.back() - 80) < 4);
    frames.push_back(static_cast<int>(std::lround((*video)->time() * clip.frame_rate)));
  }
  return frames;
}

TEST(LiveFile, KeyFramesAlone) {
  std::vector<int> all(20);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(frames_read(false), all);
  for (const int b_frames : {0, 2})
    EXPECT_EQ(frames_read(true, b_frames), std::vector<int>({0, 5, 10, 15})) << b_frames;
}

TEST(CameraUrl, NamesADeviceThatIsAllowed) {
  EXPECT_NE(refused("v4l2:///dev/video0", {}).message.find("--allowed-video-devices"),
            std::string::npos);
  for (const char* url :
       {"v4l2:///dev/zero", "v4l2:///dev/../dev/zero", "v4l2://host/dev/null", "v4l2:/dev/null",
        "v4l2:///dev/null?size=640", "v4l2:///dev/null?size=640x", "v4l2:///dev/null?size=0x0",
        "v4l2:///dev/null?size=-1x5", "v4l2:///dev/null?fps=3",
        "v4l2:///dev/null?size=9999999999x1"})
    EXPECT_EQ(refused(url).code, ErrorCode::kInvalidArgument) << url;
}

TEST(CameraUrl, MayNameADeviceByALink) {
  const valora::testing::TempDir folder;
  const auto link = std::filesystem::path(folder.path()) / "camera";
  std::filesystem::create_symlink("/dev/null", link);
  EXPECT_EQ(refused("v4l2://" + link.string()).message, "the device is no camera");
  EXPECT_EQ(refused("v4l2:///dev/null", {link.string()}).message, "the device is no camera");
}

TEST(Camera, ThatIsNotThereMayCome) {
  const std::string absent = "/dev/valora-no-such-camera";
  EXPECT_EQ(refused("v4l2://" + absent, {absent}).code, ErrorCode::kUnavailable);
  // Names of a device go with it.
  EXPECT_EQ(refused("v4l2:///dev/null", {absent}).code, ErrorCode::kUnavailable);
  EXPECT_EQ(refused("v4l2://" + absent, {"/dev/null"}).code, ErrorCode::kUnavailable);
  FetchPolicy policy;
  policy.video_devices = {absent};
  EXPECT_TRUE(check_live_url("v4l2://" + absent, policy).ok());
}

// With a device, as the kernel's module vivid makes one: VALORA_TEST_VIDEO_DEVICE=/dev/video0.
TEST(Camera, SendsMovingPictures) {
  const char* const device = std::getenv("VALORA_TEST_VIDEO_DEVICE");
  if (!device) GTEST_SKIP() << "no VALORA_TEST_VIDEO_DEVICE";
  const std::string url = std::string("v4l2://") + device;
  for (const auto& [query, width, height] :
       {std::tuple("?size=640x360", 640, 360), std::tuple("?size=320x180", 320, 180)}) {
    const auto video = open_camera(url + query, {device});
    ASSERT_TRUE(video.ok()) << video.error().message;
    Image last;
    double time = -1;
    for (int i = 0; i < 3; ++i) {
      const auto found = (*video)->next();
      ASSERT_TRUE(found.ok()) << found.error().message;
      EXPECT_GT((*video)->time(), time);
      time = (*video)->time();
      const auto image = (*video)->image();
      ASSERT_TRUE(image.ok()) << image.error().message;
      EXPECT_EQ(image->width, width);
      EXPECT_EQ(image->height, height);
      EXPECT_NE(image->rgb, last.rgb);
      last = *image;
    }
    if (const char* const shown = std::getenv("VALORA_TEST_VIDEO_PICTURE")) {
      FILE* file =
          std::fopen((std::string(shown) + "-" + std::to_string(width) + ".ppm").c_str(), "wb");
      ASSERT_NE(file, nullptr);
      std::fprintf(file, "P6 %d %d 255\n", width, height);
      std::fwrite(last.rgb.data(), 1, last.rgb.size(), file);
      std::fclose(file);
    }
    EXPECT_EQ(refused(url, {device}).code, ErrorCode::kUnavailable);  // in use
  }
}

}  // namespace
}  // namespace valora::media
