#include "generator/data/box_text.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace valora::generator {
namespace {

const BoxFormat kHundredths{.scale = 100};
const BoxFormat kPlain{.scale = 100, .labels = false};

TEST(WriteBoxes, GroupsBoxesByLabel) {
  const std::vector<LabelledBox> boxes{
      {"car", {0.12, 0.3, 0.55, 0.61}}, {"dog", {0, 0, 1, 1}}, {"car", {0.6, 0.304, 0.796, 0.64}}};
  EXPECT_EQ(write_boxes(boxes, kHundredths),
            "<ref>car</ref><box>(12,30),(55,61)</box><box>(60,30),(80,64)</box>"
            "<ref>dog</ref><box>(0,0),(100,100)</box>");
  EXPECT_EQ(write_boxes(boxes, kPlain), "[12,30,55,61][0,0,100,100][60,30,80,64]");
  EXPECT_EQ(write_boxes({}, kHundredths), "");
  EXPECT_EQ(write_boxes({{"", {0, 0, 0.5, 0.5}}}, kHundredths), "<box>(0,0),(50,50)</box>");
}

TEST(WriteBoxes, KeepsAPositiveAreaDespiteRounding) {
  EXPECT_EQ(write_boxes({{"", {0.501, 0.999, 0.502, 1}}}, kPlain), "[50,99,51,100]");
  EXPECT_EQ(write_boxes({{"", {0, 0, 0.001, 0.001}}}, {.scale = 1, .labels = false}), "[0,0,1,1]");
}

TEST(ReadBoxes, RoundTripsWithinRounding) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> share(0, 1);
  for (int round = 0; round < 2000; ++round) {
    const BoxFormat format{.scale = 1 + static_cast<int>(random() % 2000),
                           .labels = round % 2 == 0};
    std::vector<LabelledBox> boxes(random() % 6);
    for (LabelledBox& box : boxes) {
      const auto [x0, x1] = std::minmax({share(random), share(random)});
      const auto [y0, y1] = std::minmax({share(random), share(random)});
      box = {format.labels ? std::string(1, static_cast<char>('a' + random() % 3)) + " < b" : "",
             {x0, y0, x1, y1}};
    }
    const auto read = read_boxes(write_boxes(boxes, format), format);
    ASSERT_EQ(read.size(), boxes.size());
    // Written order: all boxes of a label follow its first one.
    std::vector<LabelledBox> expected;
    for (const LabelledBox& box : boxes)
      if (std::none_of(expected.begin(), expected.end(),
                       [&](const auto& other) { return other.label == box.label; }))
        std::copy_if(boxes.begin(), boxes.end(), std::back_inserter(expected),
                     [&](const auto& other) { return other.label == box.label; });
    for (size_t i = 0; i < read.size(); ++i) {
      EXPECT_EQ(read[i].label, expected[i].label);
      // Rounding costs at most half a unit; a whole one if a side would have vanished.
      const double slack = 1.0 / format.scale + 1e-12;
      EXPECT_NEAR(read[i].box.x0, expected[i].box.x0, slack);
      EXPECT_NEAR(read[i].box.y0, expected[i].box.y0, slack);
      EXPECT_NEAR(read[i].box.x1, expected[i].box.x1, slack);
      EXPECT_NEAR(read[i].box.y1, expected[i].box.y1, slack);
    }
  }
}

TEST(ReadBoxes, IgnoresSurroundingText) {
  const auto boxes = read_boxes(
      "I see <ref>a car</ref> here: <box>( 10, 20),(30 ,40) </box> and [1, 2, 3.5, 4] (so)",
      kHundredths);
  ASSERT_EQ(boxes.size(), 2u);
  EXPECT_EQ(boxes[0].label, "a car");
  EXPECT_DOUBLE_EQ(boxes[0].box.x0, 0.1);
  EXPECT_DOUBLE_EQ(boxes[0].box.y1, 0.4);
  EXPECT_DOUBLE_EQ(boxes[1].box.x1, 0.035);
}

TEST(ReadBoxes, ToleratesMissingTags) {
  const auto boxes = read_boxes("<ref>car<box>(1,2)(3,4)<ref>dog</ref>(5,6),(7,8)", kHundredths);
  ASSERT_EQ(boxes.size(), 2u);
  EXPECT_EQ(boxes[0].label, "car");
  EXPECT_EQ(boxes[1].label, "dog");
}

TEST(ReadBoxes, DropsATruncatedBox) {
  const std::string first = "<ref>car</ref><box>(1,2),(3,4)</box>";
  for (const char* rest : {"<box>(5,6),(7,8)", "<box>(5,6),(7,8)</bo", "<box>(5,6),(7,", "<bo"})
    EXPECT_EQ(read_boxes(first + rest, kHundredths).size(), 1u) << rest;
  EXPECT_EQ(read_boxes(first + "(5,6),(7,8)", kHundredths).size(), 2u) << "whole without tags";
}

TEST(ReadBoxes, ClampsAndOrdersCornersAndDropsEmptyBoxes) {
  const auto boxes =
      read_boxes("[-5,10,250,1000000][30,30,20,40][5,5,5,9][120,0,130,10][10,20,30]", kPlain);
  ASSERT_EQ(boxes.size(), 2u);
  EXPECT_EQ(boxes[0].box.x0, 0);
  EXPECT_EQ(boxes[0].box.x1, 1);
  EXPECT_EQ(boxes[1].box.x0, 0.2);
  EXPECT_EQ(boxes[1].box.x1, 0.3);
}

TEST(ReadBoxes, AcceptsArbitraryText) {
  for (const char* text :
       {"", "[", "(", "<ref>", "<ref></ref>", "[1", "[1,2,3,4", "(1,2),(3", "[nan,0,inf,1]", "[[[[",
        "[,,,]", "(1,2),", "<ref><ref><ref>", "[99999999999999999999999999999,0,100,1]"})
    EXPECT_TRUE(read_boxes(text, kHundredths).empty()) << text;
  std::mt19937 random(5);
  const std::string alphabet = "<ref>/box()[],.0123456789- ";
  for (int round = 0; round < 5000; ++round) {
    std::string text(random() % 60, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    for (const LabelledBox& box : read_boxes(text, kHundredths))
      EXPECT_TRUE(box.box.x0 >= 0 && box.box.x0 < box.box.x1 && box.box.x1 <= 1) << text;
  }
}

TEST(Overlap, IsIntersectionOverUnion) {
  const Box a{0, 0, 0.5, 0.5};
  EXPECT_DOUBLE_EQ(overlap(a, a), 1);
  EXPECT_DOUBLE_EQ(overlap(a, {0.25, 0, 0.75, 0.5}), 1.0 / 3);
  EXPECT_EQ(overlap(a, {0.5, 0, 1, 0.5}), 0) << "sides that touch";
  EXPECT_EQ(overlap({0.2, 0.2, 0.2, 0.2}, {0.2, 0.2, 0.2, 0.2}), 0) << "no area at all";
}

}  // namespace
}  // namespace valora::generator
