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
    const auto shape = serving::box_shape({format.scale, format.labels}, {200, 400});
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

// An answer cut off by max_tokens has the same boxes for the metrics as for a client.
TEST(BoxAnswers, TruncatedAnswerYieldsTheSameBoxesAsTheServer) {
  const std::vector<LabelledBox> boxes = {{"car", {0.1, 0.25, 0.5, 1}}, {"car", {0, 0, 0.5, 0.5}}};
  for (const BoxFormat& format : {BoxFormat{100, true}, BoxFormat{100, false}}) {
    const std::string whole = write_boxes(boxes, format);
    for (size_t length = 0; length <= whole.size(); ++length) {
      const std::string answer = whole.substr(0, length);
      const auto shape = serving::box_shape({format.scale, format.labels}, {200, 400});
      std::string text = shape->push(answer);
      text += shape->finish();
      EXPECT_EQ(read_boxes(answer, format).size(), parse_json(text, "the answer")->size())
          << answer;
    }
  }
}

}  // namespace
}  // namespace valora::generator
