// Adapters must learn the box format that the engine parses for `response_format` of type boxes.
#include <gtest/gtest.h>

#include "base/json/json.h"
#include "generator/data/box_text.h"
#include "serving/output/answer_shape.h"

namespace valora::generator {
namespace {

TEST(BoxAnswers, EngineReadsTrainingFormat) {
  const std::vector<LabelledBox> boxes = {
      {"car", {0.1, 0.25, 0.5, 1}}, {"a \"b\"", {0, 0, 0.01, 0.5}}, {"car", {0.75, 0.5, 1, 0.75}}};
  for (const BoxFormat& format : {BoxFormat{100, true}, BoxFormat{100, false}}) {
    const auto shape = serving::box_shape({format.scale, format.labels}, {{200, 400}, {}});
    std::string text = shape->push(write_boxes(boxes, format));
    text += shape->finish();
    const auto json = parse_json(text, "the answer");
    ASSERT_TRUE(json.ok()) << text;
    ASSERT_EQ(json->size(), boxes.size());
    // Boxes of one label are written together.
    const std::vector<size_t> order =
        format.labels ? std::vector<size_t>{0, 2, 1} : std::vector<size_t>{0, 1, 2};
    for (size_t i = 0; i < order.size(); ++i) {
      const LabelledBox& box = boxes[order[i]];
      const Json corners = {box.box.x0 * 200, box.box.y0 * 400, box.box.x1 * 200, box.box.y1 * 400};
      EXPECT_EQ((*json)[i]["label"], format.labels ? Json(box.label) : Json());
      for (size_t k = 0; k < 4; ++k)
        EXPECT_NEAR((*json)[i]["box"][k].get<double>(), corners[k].get<double>(), 0.01) << text;
    }
  }
}

// Corners may be given in any order.
TEST(BoxAnswers, SwappedCornersAreTheSameForMetricsAndClients) {
  const BoxFormat format{100, true};
  const std::string answer = "<ref>car</ref><box>(50,100),(10,25)</box>";
  const std::vector<LabelledBox> boxes = read_boxes(answer, format);
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0].box.x0, 0.1);
  EXPECT_EQ(boxes[0].box.y1, 1.0);
  const auto shape = serving::box_shape({format.scale, format.labels}, {{200, 400}, {}});
  const std::string pushed = shape->push(answer);
  EXPECT_EQ(pushed + shape->finish(), R"([{"label": "car", "box": [20.0, 100.0, 100.0, 400.0]}])");
}

// An answer cut off by max_tokens has the same boxes for the metrics as for a client.
TEST(BoxAnswers, TruncatedAnswerYieldsTheSameBoxesAsTheServer) {
  const std::vector<LabelledBox> boxes = {{"car", {0.1, 0.25, 0.5, 1}}, {"car", {0, 0, 0.5, 0.5}}};
  for (const BoxFormat& format : {BoxFormat{100, true}, BoxFormat{100, false}}) {
    const std::string whole = write_boxes(boxes, format);
    for (size_t length = 0; length <= whole.size(); ++length) {
      const std::string answer = whole.substr(0, length);
      const auto shape = serving::box_shape({format.scale, format.labels}, {{200, 400}, {}});
      std::string text = shape->push(answer);
      text += shape->finish();
      EXPECT_EQ(read_boxes(answer, format).size(), parse_json(text, "the answer")->size())
          << answer;
    }
  }
}

}  // namespace
}  // namespace valora::generator
