#include "media/video/live_video.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "media/fetch/http_rules.h"
#include "media/image/decoders.h"
#include "media/video/libav_video.h"
#include "media/video/source_url.h"
#include "media/video/stop.h"
#include "media/video/v4l2_device.h"

namespace valora::media {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct Camera {
  std::string path;
  V4l2Device::Size size;
};

Result<V4l2Device::Size> parse_size(std::string_view text) {
  V4l2Device::Size size;
  const char* const end = text.data() + text.size();
  const auto width = std::from_chars(text.data(), text.data() + text.size(), size.width);
  const bool crossed = width.ec == std::errc() && width.ptr != end && *width.ptr == 'x';
  if (crossed) {
    const auto height = std::from_chars(width.ptr + 1, end, size.height);
    if (height.ec == std::errc() && height.ptr == end && size.width > 0 && size.height > 0)
      return size;
  }
  return invalid("the camera's size must be WIDTHxHEIGHT", "source");
}

// v4l2:///dev/video0?size=1280x720
Result<Camera> parse_camera(std::string_view url, const FetchPolicy& policy) {
  if (policy.video_devices.empty())
    return invalid("cameras of this machine are off: set --allowed-video-devices to allow them",
                   "source");
  std::string_view rest = url.substr(url.find(':') + 1);
  if (!rest.starts_with("///"))
    return invalid("a camera of this machine is written v4l2:///dev/video0", "source");
  const size_t mark = rest.find('?');
  Camera camera{.path = std::string(rest.substr(2, mark == rest.npos ? mark : mark - 2)),
                .size = {}};
  if (mark == rest.npos) return camera;
  std::string_view query = rest.substr(mark + 1);
  if (!query.starts_with("size="))
    return invalid("a camera's URL takes only ?size=WIDTHxHEIGHT", "source");
  query.remove_prefix(std::string_view("size=").size());
  VALORA_TRY(size, parse_size(query));
  camera.size = size;
  return camera;
}

// The device that the path stands for, if it is one of the allowed. Devices have several names
// (/dev/v4l/by-id/…), which go when they are unplugged: kUnavailable.
Result<std::string> allowed_device(const std::string& path, const FetchPolicy& policy) {
  std::error_code fault;
  const auto device = std::filesystem::canonical(path, fault);
  bool absent = static_cast<bool>(fault);
  for (const std::string& each : policy.video_devices) {
    const auto allowed = std::filesystem::canonical(each, fault);
    if (!absent && !fault && allowed == device) return device.string();
    absent = absent || fault;
  }
  if (absent)
    return Error{
        ErrorCode::kUnavailable, "the camera is not there, or not in --allowed-video-devices", {}};
  return invalid("the camera is not in --allowed-video-devices", "source");
}

class CameraVideo final : public LiveVideo {
 public:
  CameraVideo(std::unique_ptr<V4l2Device> device, const Limits& limits, milliseconds patience,
              std::stop_token stop)
      : device_(std::move(device)), limits_(limits), patience_(patience), stop_(std::move(stop)) {}

  Result<bool> next() override {
    VALORA_CHECK(device_->next(patience_, stop_));
    if (!begun_) first_ = device_->time();
    begun_ = true;
    return true;
  }
  double time() const override { return device_->time() - first_; }

  // Cameras send damaged pictures, above all at first: takes the next one that is whole.
  Result<Image> image() override {
    const auto deadline = steady_clock::now() + patience_;
    auto image = device_->image(limits_);
    while (!image.ok() && image.error().code == ErrorCode::kInvalidArgument &&
           steady_clock::now() < deadline) {
      VALORA_CHECK(device_->next(patience_, stop_));
      image = device_->image(limits_);
    }
    if (!image.ok() && image.error().code == ErrorCode::kInvalidArgument)
      return Error{ErrorCode::kUnavailable, image.error().message, {}};
    return image;
  }

 private:
  std::unique_ptr<V4l2Device> device_;
  const Limits limits_;
  const milliseconds patience_;
  const std::stop_token stop_;
  bool begun_ = false;
  double first_ = 0;
};

}  // namespace

Status check_live_url(const std::string& url, const FetchPolicy& policy) {
  if (is_local_file(url)) {
    if (policy.allowed_local_path.empty())
      return invalid("files are off: set --allowed-local-media-path to allow them", "source");
    return {};
  }
  if (is_device(url)) {
    VALORA_TRY(camera, parse_camera(url, policy));
    const auto device = allowed_device(camera.path, policy);
    if (!device.ok() && device.error().code == ErrorCode::kInvalidArgument) return device.error();
    return {};
  }
  if (!is_remote(url) && !is_rtsp(url))
    return invalid(
        "the source must begin with rtsp://, rtsps://, http://, https://, file:// or v4l2://",
        "source");
  if (!policy.allow_http)
    return invalid("sources from the network are off: set --allow-media-urls to allow them",
                   "source");
  // libav resolves an RTSP host itself, so its address cannot be checked when it is used.
  if (is_rtsp(url) && public_only(policy))
    return invalid("RTSP needs the camera's host in --allowed-media-domains", "source");
  Status host = check_host(url, policy);
  if (!host.ok()) return invalid(host.error().message, "source");
  return {};
}

Result<std::unique_ptr<LiveVideo>> LiveVideo::open(const std::string& url,
                                                   const FetchPolicy& policy, const Limits& limits,
                                                   const Reading& reading, std::stop_token stop) {
  if (!is_device(url)) {
    VALORA_CHECK(check_live_url(url, policy));
    return open_libav_video(url, policy, limits, reading, std::move(stop));
  }
  VALORA_TRY(camera, parse_camera(url, policy));
  VALORA_TRY(path, allowed_device(camera.path, policy));
  VALORA_TRY(device, V4l2Device::open(path, camera.size));
  return std::unique_ptr<LiveVideo>(
      new CameraVideo(std::move(device), limits, reading.patience, std::move(stop)));
}

}  // namespace valora::media
