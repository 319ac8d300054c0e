// One video stream of a file in memory, decoded frame by frame through libav.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>

#include "media/video/frame_index.h"
#include "media/video/video.h"

extern "C" {
struct AVFrame;
}

namespace valora::media {

// The work allowed for one video, summed over all passes.
struct DecodeBudget {
  int64_t frames_left;
  std::chrono::steady_clock::time_point deadline;
  std::stop_token stop;  // requested once no request is waiting for the video
};

Error over_limit(std::string message);

class VideoStream {
 public:
  // The bytes and the budget must outlive the stream.
  static Result<std::unique_ptr<VideoStream>> open(std::span<const uint8_t> bytes,
                                                   const Limits& limits, DecodeBudget& budget);
  ~VideoStream();

  // Frame count as declared by the container; 0 if it declares none.
  VideoInfo info() const;
  // The container's duration in seconds; 0 if it declares none.
  double duration() const;
  // Reads the rest of the file without decoding it.
  Result<std::vector<PacketMark>> packets();
  // Continues at this packet of the stream, as if the file began there. False, and no effect, if it
  // was read before.
  Result<bool> skip_to(int64_t packet);
  // The next frame in display order, valid until the next call; null at the end.
  Result<const AVFrame*> next_frame();
  // The frame as upright RGB.
  Result<Image> to_rgb(const AVFrame& frame);

 private:
  struct Impl;
  explicit VideoStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace valora::media
