#include "generator/data/testing/datasets.h"

namespace valora::generator {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Coco : public Datasets {
 protected:
  static std::string file(
      const std::string& images, const std::string& annotations,
      const std::string& categories = R"([{"id": 1, "name": "car"}, {"id": 2, "name": "dog"}])") {
    return R"({"info": {"id": [[1]]}, "annotations": )" + annotations + R"(, "images": )" + images +
           R"(, "categories": )" + categories + R"(, "licenses": [1, {"id": {"id": 2}}]})";
  }
  static constexpr const char* kImages =
      R"([{"id": 7, "file_name": "b.png", "width": 40, "height": 20}, {"id": 5, "file_name": "a.png"},
          {"id": 6, "file_name": "a.png", "width": 40, "height": 20}])";
  static constexpr const char* kAnnotations =
      R"([{"id": 1, "image_id": 7, "category_id": 1, "bbox": [10, 5, 20, 15], "segmentation": [[1, 2], {"id": 9}],
           "iscrowd": 0},
          {"id": 2, "image_id": 5, "category_id": 2, "bbox": [0, 0, 40, 20]},
          {"id": 3, "image_id": 7, "category_id": 2, "bbox": [0, 0, 4, 2]},
          {"id": 4, "image_id": 7, "category_id": 1, "bbox": [0, 0, 8, 2]},
          {"id": 5, "image_id": 6, "category_id": 1, "bbox": [0, 0, 99, 99], "iscrowd": 1}])";
  std::string fault(const std::string& text) {
    const std::string message = error(coco(TaskType::kDetection, text));
    EXPECT_THAT(message, StartsWith(dir_.file("data.json") + ": "));
    return message.substr(std::min(message.size(), dir_.file("data.json").size() + 2));
  }
};

TEST_F(Coco, DetectionHasOneSamplePerImage) {
  const auto samples = coco(TaskType::kDetection, file(kImages, kAnnotations));
  ASSERT_TRUE(samples.ok()) << samples.error().message;
  ASSERT_EQ(samples->size(), 2u) << "an image without a box has nothing to ask for";
  EXPECT_EQ(samples->at(0).origin, dir_.file("data.json") + ": image 7");
  ASSERT_EQ(samples->at(0).boxes.size(), 3u);
  EXPECT_EQ(samples->at(0).boxes[0].label, "car");
  EXPECT_EQ(samples->at(0).boxes[0].box.x0, 0.25);
  EXPECT_EQ(samples->at(0).boxes[0].box.x1, 0.75);
  EXPECT_EQ(samples->at(0).boxes[0].box.y1, 1);
  EXPECT_EQ(samples->at(1).boxes.at(0).box.x1, 1) << "of the picture's own size";

  task_.question = "Box all things.";
  EXPECT_EQ(coco(TaskType::kDetection, file(kImages, kAnnotations))->size(), 3u);
  task_.question = "";
  task_.labels = {"car", "dog"};
  EXPECT_EQ(coco(TaskType::kDetection, file(kImages, kAnnotations))->size(), 3u);
  source_.limit = 1;
  EXPECT_EQ(coco(TaskType::kDetection, file(kImages, kAnnotations))->size(), 1u);
}

TEST_F(Coco, GroundingHasOneSamplePerLabel) {
  const auto samples = coco(TaskType::kGrounding, file(kImages, kAnnotations));
  ASSERT_TRUE(samples.ok()) << samples.error().message;
  ASSERT_EQ(samples->size(), 3u);
  EXPECT_EQ(samples->at(0).boxes.size(), 2u);
  EXPECT_EQ(samples->at(0).boxes.at(1).label, "car");
  EXPECT_EQ(samples->at(1).boxes.at(0).label, "dog");
  EXPECT_EQ(samples->at(1).media.at(0).files, samples->at(0).media.at(0).files);
  task_.question = "Where is it?";
  EXPECT_EQ(coco(TaskType::kGrounding, file(kImages, kAnnotations))->size(), 2u);
}

TEST_F(Coco, ErrorsNameTheirPlace) {
  const std::string image = R"([{"id": 7, "file_name": "b.png", "width": 40, "height": 20}])";
  const auto annotation = [&](const std::string& fields) {
    return fault(file(image, "[{" + fields + "}]"));
  };
  EXPECT_EQ(annotation(R"("id": 3, "image_id": 7, "category_id": 1, "bbox": [30, 0, 11, 5])"),
            "annotation 3 of image 7: the box [30, 0, 41, 5] is outside the 40 x 20 picture");
  EXPECT_EQ(annotation(R"("id": 3, "image_id": 7, "category_id": 1, "bbox": [30, 0, 0, 5])"),
            "annotation 3 of image 7: the box [30, 0, 30, 5] has no area");
  EXPECT_EQ(annotation(R"("id": 3, "image_id": 8, "category_id": 1, "bbox": [0, 0, 1, 1])"),
            "annotation 3 refers to image 8, which does not exist");
  EXPECT_EQ(annotation(R"("id": 3, "image_id": 7, "category_id": 4, "bbox": [0, 0, 1, 1])"),
            "annotation 3 refers to category 4, which does not exist");
  EXPECT_EQ(annotation(R"("id": 3, "image_id": 7, "category_id": 1, "bbox": [0, 0, 1])"),
            "annotation 3: \"bbox\" must be four numbers [x, y, width, height]");
  EXPECT_EQ(annotation(R"("id": 3, "category_id": 1)"), "annotation 3: \"image_id\" is missing");
  EXPECT_EQ(annotation(R"("image_id": 7)"), "annotation number 1: \"id\" is missing");
  EXPECT_EQ(fault(file(R"([{"id": 7, "file_name": "c.png"}])",
                       R"([{"id": 3, "image_id": 7, "category_id": 1, "bbox": [0, 0, 1, 1]}])")),
            "image 7: there is no file " + dir_.file("c.png"));
  EXPECT_EQ(
      fault(file(R"([{"id": 7, "file_name": "a.png"}, {"id": 7, "file_name": "a.png"}])", "[]")),
      "image 7 is repeated");
  EXPECT_EQ(fault(file(image, "[]", R"([{"id": 1, "name": "a"}, {"id": 1, "name": "b"}])")),
            "category 1 is repeated");
  EXPECT_EQ(fault(file(image, "[]")), "it has no sample");
  EXPECT_EQ(fault(file(image, "[1]")), "all of \"annotations\" must be objects");
  EXPECT_EQ(fault(file(image, "[[]]")), "all of \"annotations\" must be objects");
  EXPECT_EQ(fault(R"({"images": [], "categories": []})"), "it has no list \"annotations\"");
  EXPECT_EQ(fault(R"({"images": {"a": {"id": 1}}, "categories": []})"),
            "\"images\" must be a list");
  EXPECT_EQ(fault(R"({"images": 4, "categories": []})"), "\"images\" must be a list");
  EXPECT_EQ(fault(R"({"images": [], "images": []})"), "it has \"images\" twice");
  EXPECT_EQ(fault("[]"), "must be a JSON object with \"images\", \"annotations\", \"categories\"");
  EXPECT_THAT(fault("{\n\"images\": [}"),
              HasSubstr("this is not JSON: parse error at line 2, column 12"));
  EXPECT_EQ(fault(R"({"info": )" + std::string(200, '[')), "nested deeper than 32 levels");
  std::string many = R"([{"id": 1, "bbox": [)";
  for (int i = 0; i < 5000; ++i) many += "0,";
  EXPECT_EQ(fault(file(image, many + "0]}]")), "one of \"annotations\" has more than 4096 values");
}

}  // namespace
}  // namespace valora::generator
