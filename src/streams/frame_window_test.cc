#include "streams/frame_window.h"

#include <gtest/gtest.h>

#include <thread>

namespace valora::streams {
namespace {

using namespace std::chrono_literals;

Frame at(double time) { return {.time = time}; }

std::vector<int64_t> ids(const std::vector<FramePtr>& frames) {
  std::vector<int64_t> out;
  for (const FramePtr& frame : frames) out.push_back(frame->id);
  return out;
}
using Ids = std::vector<int64_t>;

TEST(FrameWindow, HoldsTheNewestAndCountsTheDropped) {
  FrameWindow window(2, 0);
  for (int i = 0; i < 5; ++i) window.push(at(i));
  EXPECT_EQ(ids(window.take(0ms)), Ids({4, 5}));
  EXPECT_EQ(window.counts().came, 5);
  EXPECT_EQ(window.counts().dropped, 4);
  EXPECT_EQ(ids(window.take(0ms)), Ids());
  window.push(at(5));
  EXPECT_EQ(ids(window.take(0ms)), Ids({5, 6}));
  EXPECT_EQ(window.counts().dropped, 4);
}

TEST(FrameWindow, HoldsTheFramesOfItsSeconds) {
  FrameWindow window(1, 2.5);
  for (int i = 0; i < 6; ++i) window.push(at(i));
  EXPECT_EQ(ids(window.take(0ms)), Ids({4, 5, 6}));
  for (int i = 0; i < 200; ++i) window.push(at(6 + i * 0.001));
  EXPECT_EQ(window.take(0ms).size(), FrameWindow::kMostFrames);
}

TEST(FrameWindow, AFileWaitsForItsReader) {
  FrameWindow window(1, 0);
  std::vector<int64_t> seen;
  std::jthread file([&] {
    for (int i = 0; i < 20; ++i) window.push(at(i), true);
    window.end();
  });
  while (!window.ended())
    for (const FramePtr& frame : window.take(10s)) seen.push_back(frame->id);
  EXPECT_EQ(seen.size(), 20u);
  EXPECT_EQ(window.counts().dropped, 0);
}

TEST(FrameWindow, AStopEndsEveryWait) {
  FrameWindow window(1, 0);
  std::stop_source stop;
  window.push(at(0));
  std::jthread writer([&] { window.push(at(1), true, stop.get_token()); });
  std::this_thread::sleep_for(1ms);
  stop.request_stop();
  writer.join();
  EXPECT_TRUE(window.take(1h, stop.get_token()).empty());
}

}  // namespace
}  // namespace valora::streams
