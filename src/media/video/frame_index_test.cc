#include "media/video/frame_index.h"

#include <gtest/gtest.h>

namespace valora::media {
namespace {

std::vector<PacketMark> marks(std::initializer_list<std::pair<int64_t, bool>> packets) {
  std::vector<PacketMark> out;
  for (const auto& [time, key] : packets) out.push_back({.time = time, .key = key});
  return out;
}

// In the order of the file: I0 P3 B1 B2 | I6 B4 B5 P9 B7 B8, where B4 and B5 lead the second key.
std::vector<PacketMark> open_groups() {
  return marks({{0, true},
                {3, false},
                {1, false},
                {2, false},
                {6, true},
                {4, false},
                {5, false},
                {9, false},
                {7, false},
                {8, false}});
}

TEST(FrameIndex, NumbersFramesInDisplayOrder) {
  const auto index = FrameIndex::from(open_groups());
  ASSERT_TRUE(index);
  EXPECT_EQ(index->frames(), 10);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(index->time(i), i);
  EXPECT_EQ(index->packet(3), 1);
  EXPECT_EQ(index->packet(4), 5);
}

TEST(FrameIndex, LeadingPicturesNeedTheKeyBefore) {
  const auto index = FrameIndex::from(open_groups());
  ASSERT_TRUE(index);
  EXPECT_EQ(index->start(5).packet, 0);
  EXPECT_EQ(index->start(6).packet, 4);
  EXPECT_EQ(index->start(6).frame, 6);
  EXPECT_EQ(index->start(8).packet, 4);
}

TEST(FrameIndex, RunsSkipGroupsWithoutKeptFrames) {
  std::vector<PacketMark> packets;
  for (int i = 0; i < 100; ++i) packets.push_back({.time = i * 10, .key = i % 10 == 0});
  const auto index = FrameIndex::from(packets);
  ASSERT_TRUE(index);
  const std::vector<int64_t> kept = {3, 4, 55, 59, 61, 98};
  const auto runs = index->runs(kept);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].first, 0);
  EXPECT_EQ(runs[0].end, 5);
  EXPECT_EQ(runs[1].first, 50);
  EXPECT_EQ(runs[1].from, 50);
  EXPECT_EQ(runs[1].end, 62);
  EXPECT_EQ(runs[1].kept_end, 5u);
  EXPECT_EQ(runs[2].first, 90);
  EXPECT_EQ(packets_of(runs), 5 + 12 + 9);
}

TEST(FrameIndex, HiddenPacketsAreNoFrames) {
  auto packets = marks({{0, true}, {1, false}, {2, false}, {3, false}});
  packets[1].shown = false;
  const auto index = FrameIndex::from(packets);
  ASSERT_TRUE(index);
  EXPECT_EQ(index->frames(), 3);
  EXPECT_EQ(index->packet(1), 2);
}

TEST(FrameIndex, AbsentWithoutDistinctTimes) {
  EXPECT_FALSE(FrameIndex::from({}));
  EXPECT_FALSE(FrameIndex::from(marks({{0, true}, {0, false}})));
  auto untimed = marks({{0, true}, {1, false}});
  untimed[1].timed = false;
  EXPECT_FALSE(FrameIndex::from(untimed));
}

TEST(FrameIndex, WithoutKeysDecodingBeginsWithTheFile) {
  const auto index = FrameIndex::from(marks({{0, false}, {1, false}, {2, false}}));
  ASSERT_TRUE(index);
  EXPECT_EQ(index->start(2).packet, 0);
}

}  // namespace
}  // namespace valora::media
