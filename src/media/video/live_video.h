// A camera, or another source of frames that is read while it sends: RTSP, HTTP (MJPEG, HLS,
// MPEG-TS, MP4), files and cameras of this machine, decoded on the calling thread through libav.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

#include "media/fetch/fetch.h"
#include "media/image/image.h"

namespace valora::media {

class HardwareDevice;  // hardware_device.h

class LiveVideo {
 public:
  struct Reading {
    std::chrono::milliseconds patience;  // how long the source may send nothing
    // Decodes key frames alone. All frames of a camera of this machine are key frames.
    bool key_frames_only = false;
    // Decodes, as open_video_decoder() gives it; null: software. Videos of requests are always
    // decoded in software, whose pixels are the same on every machine.
    std::shared_ptr<const HardwareDevice> device = nullptr;
  };

  // url: rtsp://, rtsps://, http(s)://, file:// or v4l2:///dev/video0?size=1280x720, which obey the
  // policy. A host in a network without public addresses, as most cameras have, must be one of its
  // allowed hosts. The stop token ends every call with kCancelled. kInvalidArgument: the policy or
  // the format forbids the URL for good. kUnavailable: it may work later.
  static Result<std::unique_ptr<LiveVideo>> open(const std::string& url, const FetchPolicy& policy,
                                                 const Limits& limits, const Reading& reading,
                                                 std::stop_token stop);
  LiveVideo() = default;
  virtual ~LiveVideo() = default;
  LiveVideo(const LiveVideo&) = delete;
  LiveVideo& operator=(const LiveVideo&) = delete;

  // Reads until the next frame is there, without making RGB of it. False at the end of a file.
  // Damaged packets are passed over. kUnavailable if the source is silent for too long or ends the
  // connection; a source of another size goes on, decoded anew.
  virtual Result<bool> next() = 0;
  // The time of the frame that next() found (seconds since the first one, as the source counts; not
  // trusted), and its picture in upright RGB. kInvalidArgument if the picture is damaged.
  virtual double time() const = 0;
  virtual Result<Image> image() = 0;
};

// kInvalidArgument if the policy forbids the URL or its scheme is not one of LiveVideo's.
Status check_live_url(const std::string& url, const FetchPolicy& policy);

}  // namespace valora::media
