#include "streams/frame_window.h"

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
  const size_t most = seconds_ > 0 ? kMostFrames : frames_;
  const auto is_old = [&](const FramePtr& frame) {
    return seconds_ > 0 && window_.back()->time - frame->time > seconds_;
  };
  while (window_.size() > most || is_old(window_.front())) window_.pop_front();
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
