#include "streams/frame_window.h"

#include <gtest/gtest.h>

#include <thread>

namespace valora::streams {
namespace {

using namespace std::chrono_literals;

Frame at(double time) { return {.clock = time}; }

std::vector<int64_t> ids(const std::vector<FramePtr>& frames) {
  std::vector<int64_t> out;
  for (const FramePtr& frame : frames) out.push_back(frame->id);
  return out;
}
using Ids = std::vector<int64_t>;

TEST(FrameWindow, HoldsTheNewestAndCountsTheDropped) {
  FrameWindow window({.frames = 2});
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
  FrameWindow window({.seconds = 2.5});
  for (int i = 0; i < 6; ++i) window.push(at(i));
  EXPECT_EQ(ids(window.take(0ms)), Ids({4, 5, 6}));
  for (int i = 0; i < 200; ++i) window.push(at(6 + i * 0.001));
  EXPECT_EQ(window.take(0ms).size(), FrameWindow::kMostFrames);
}

TEST(FrameWindow, FramesLeaveTogether) {
  FrameWindow window({.frames = 2, .slide = 3});
  std::vector<Ids> seen;
  for (int i = 0; i < 6; ++i) {
    window.push(at(i));
    seen.push_back(ids(window.take(0ms)));
  }
  EXPECT_EQ(seen, std::vector<Ids>({{1}, {1, 2}, {1, 2, 3}, {1, 2, 3, 4}, {4, 5}, {4, 5, 6}}));
}

TEST(FrameWindow, OldFramesOfSecondsLeaveTogether) {
  FrameWindow window({.seconds = 1.5, .slide = 2});
  std::vector<Ids> seen;
  for (int i = 0; i < 5; ++i) {
    window.push(at(i));
    seen.push_back(ids(window.take(0ms)));
  }
  EXPECT_EQ(seen, std::vector<Ids>({{1}, {1, 2}, {1, 2, 3}, {3, 4}, {3, 4, 5}}));
  FrameWindow long_window({.seconds = 1, .slide = 64});
  for (int i = 0; i < 200; ++i) long_window.push(at(i * 0.1));
  EXPECT_LE(long_window.take(0ms).size(), FrameWindow::kMostFrames);
  FrameWindow full({.seconds = 100, .slide = 8});
  for (int i = 0; i < 64; ++i) full.push(at(i));
  EXPECT_EQ(full.take(0ms).size(), 64u);
  full.push(at(64));
  EXPECT_EQ(full.take(0ms).size(), 57u);
}

TEST(FrameWindow, AFileThatBeginsAnewLeavesItsOldFrames) {
  FrameWindow window({.seconds = 5});
  for (int i = 0; i < 4; ++i) window.push({.clock = 10.0 + i, .run = 1});
  for (int i = 0; i < 2; ++i) window.push({.clock = 1.0 * i, .run = 2});
  EXPECT_EQ(ids(window.take(0ms)), Ids({5, 6}));
}

TEST(FrameWindow, AFileWaitsForItsReader) {
  FrameWindow window({});
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
  FrameWindow window({});
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
