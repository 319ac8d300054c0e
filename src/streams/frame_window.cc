#include "streams/frame_window.h"

#include <algorithm>
#include <utility>

namespace valora::streams {

FramePtr FrameWindow::push(Frame frame, bool wait, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (wait) changed_.wait(lock, stop, [&] { return taken_; });
  counts_.dropped += taken_ ? 0 : 1;
  frame.id = ++counts_.came;
  window_.push_back(std::make_shared<const Frame>(std::move(frame)));
  trim();
  taken_ = false;
  changed_.notify_all();
  return window_.back();
}

void FrameWindow::trim() {
  const size_t most = rule_.seconds > 0 ? kMostFrames : rule_.frames;
  const Frame& newest = *window_.back();
  const auto is_old = [&](size_t i) {
    const Frame& frame = *window_[i];
    const bool earlier_run = frame.run != newest.run && frame.clock > newest.clock;
    return window_.size() - i > most ||
           (rule_.seconds > 0 && (earlier_run || newest.clock - frame.clock > rule_.seconds));
  };
  size_t old = 0;
  while (is_old(old)) ++old;
  if (window_.size() > kMostFrames)
    old = std::max(old, std::min(rule_.slide, kMostFrames));
  else if (old < rule_.slide)
    return;
  window_.erase(window_.begin(), window_.begin() + static_cast<int64_t>(old));
}

std::vector<FramePtr> FrameWindow::take(std::chrono::milliseconds time,
                                        const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, time, [&] { return !taken_ || ended_; });
  if (taken_ || stop.stop_requested()) return {};
  taken_ = true;
  changed_.notify_all();
  return {window_.begin(), window_.end()};
}

void FrameWindow::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool FrameWindow::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_ && taken_;
}

FrameCounts FrameWindow::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace valora::streams
