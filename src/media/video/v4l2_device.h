// A camera of this machine through Video4Linux (linux/videodev2.h): single-planar capture into
// buffers that the driver fills.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "media/image/image.h"

namespace valora::media {

class V4l2Device {
 public:
  struct Size {
    int width = 0, height = 0;  // 0: as the device is set
  };

  // Opens the device and begins to capture. Its format is the first of YUYV, UYVY, NV12, I420, RGB,
  // BGR and MJPEG that has the size exactly, else the first that the device has, in the size next
  // to it. kUnavailable: the device is absent, in use, or fails. kInvalidArgument: it is no camera,
  // or has none of these formats.
  static Result<std::unique_ptr<V4l2Device>> open(const std::string& path, Size size);
  ~V4l2Device();
  V4l2Device(const V4l2Device&) = delete;
  V4l2Device& operator=(const V4l2Device&) = delete;

  // Waits for the next picture, and leaves out all but the newest that are there. Damaged pictures
  // are passed over. kUnavailable: none within the patience, or the device is gone.
  Status next(std::chrono::milliseconds patience, const std::stop_token& stop);
  // Of the picture: seconds, as the driver counts.
  double time() const;
  // kInvalidArgument if it is damaged.
  Result<Image> image(const Limits& limits);

 private:
  struct Impl;
  explicit V4l2Device(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace valora::media
