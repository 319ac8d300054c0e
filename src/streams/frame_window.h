// The newest frames of a stream, between the thread that brings them and the one that asks about
// them. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include "streams/frame.h"

namespace valora::streams {

using FramePtr = std::shared_ptr<const Frame>;

struct FrameCounts {
  int64_t came = 0;
  int64_t dropped = 0;  // newer ones came before anyone took them
};

// Which frames a question is about.
struct WindowRule {
  size_t frames = 1;         // the newest
  double seconds = 0;        // all frames of the newest seconds; 0: `frames`
  size_t slide = 1;          // frames that leave together
  bool as_pictures = false;  // not as a video, even if the model takes one

  // The most frames of a question; 0: of a rule in seconds, unknown.
  size_t most() const { return seconds > 0 ? 0 : frames + slide - 1; }
};

// Holds the frames of a rule, at most kMostFrames. Old frames stay until `slide` of them leave
// together: meanwhile each window begins like the one before, so its KV is in the prefix cache. A
// slow reader sees the newest frames, never a backlog.
class FrameWindow {
 public:
  static constexpr size_t kMostFrames = 64;

  explicit FrameWindow(const WindowRule& rule) : rule_(rule) {}

  // Gives the frame its id, and returns it. wait: waits until the frame before it was taken, or a
  // stop, so that none is dropped.
  FramePtr push(Frame frame, bool wait = false, const std::stop_token& stop = {});
  // The window once it has a frame that was not taken yet; empty after `time`, at a stop, or after
  // end() if all were taken.
  std::vector<FramePtr> take(std::chrono::milliseconds time, const std::stop_token& stop = {});
  // No frame follows.
  void end();
  bool ended() const;  // and the last frame was taken
  FrameCounts counts() const;

 private:
  void trim();

  const WindowRule rule_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<FramePtr> window_;
  FrameCounts counts_;
  bool taken_ = true;  // the newest frame
  bool ended_ = false;
};

}  // namespace valora::streams
