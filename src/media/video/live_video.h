// A camera, or another source of frames that is read while it sends: RTSP, HTTP (MJPEG, HLS,
// MPEG-TS, MP4) and files, decoded on the calling thread through libav.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "media/fetch/fetch.h"
#include "media/image/image.h"

namespace valora::media {

struct LiveFrame {
  Image image;      // upright RGB
  double time = 0;  // seconds since the first frame, as the source counts; not trusted
};

class LiveVideo {
 public:
  // url: rtsp://, rtsps://, http(s):// or file://, which obey the policy. A host in a network
  // without public addresses, as most cameras have, must be one of its allowed hosts. patience: how
  // long the source may send nothing. The stop token ends every call with kCancelled.
  // kInvalidArgument: the policy or the format forbids the URL for good. kUnavailable: it may work
  // later.
  static Result<std::unique_ptr<LiveVideo>> open(const std::string& url, const FetchPolicy& policy,
                                                 const Limits& limits,
                                                 std::chrono::milliseconds patience,
                                                 std::stop_token stop);
  ~LiveVideo();
  LiveVideo(const LiveVideo&) = delete;
  LiveVideo& operator=(const LiveVideo&) = delete;

  // Reads until the next frame is decoded, without making RGB of it. False at the end of a file.
  // Damaged packets are passed over. kUnavailable if the source is silent for too long or ends the
  // connection; a source of another size goes on, decoded anew.
  Result<bool> next();
  // The time of the frame that next() found, and its picture.
  double time() const;
  Result<Image> image();

 private:
  struct Impl;
  explicit LiveVideo(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// kInvalidArgument if the policy forbids the URL or its scheme is not one of LiveVideo's.
Status check_live_url(const std::string& url, const FetchPolicy& policy);

}  // namespace valora::media
