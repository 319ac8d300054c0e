#include "generator/data/datasets.h"

#include "generator/data/testing/datasets.h"

namespace valora::generator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(Datasets, ReadsJsonLinesOfEachTaskType) {
  const auto labels =
      jsonl(TaskType::kClassification,
            "\xEF\xBB\xBF{\"image\": \"a.png\", \"label\": \"cat\", \"id\": 7}\r\n\n"
            "{\"images\": [\"b.png\", \"a.png\"], \"label\": \"dog\"}");
  ASSERT_TRUE(labels.ok()) << labels.error().message;
  ASSERT_EQ(labels->size(), 2u);
  EXPECT_EQ(labels->at(0).origin, dir_.file("data.jsonl") + ":1");
  EXPECT_THAT(labels->at(0).media.at(0).files, ElementsAre(dir_.file("a.png")));
  EXPECT_THAT(labels->at(0).labels, ElementsAre("cat"));
  EXPECT_EQ(labels->at(1).origin, dir_.file("data.jsonl") + ":3");
  EXPECT_EQ(labels->at(1).media.size(), 2u);

  const auto questions = jsonl(
      TaskType::kQuestionAnswering,
      R"({"image": "a.png", "prompt": "How many?", "answer": "3", "answers": ["3", "three"]})");
  ASSERT_TRUE(questions.ok()) << questions.error().message;
  EXPECT_EQ(questions->at(0).question, "How many?");
  EXPECT_EQ(questions->at(0).answer, "3");
  EXPECT_THAT(questions->at(0).references, ElementsAre("3", "three"));

  const auto videos = jsonl(TaskType::kVideo,
                            "{\"frames\": [\"b.png\", \"a.png\"], \"label\": \"falls\"}\n"
                            "{\"video\": \"clip.mp4\", \"label\": \"stands\"}\n");
  ASSERT_TRUE(videos.ok()) << videos.error().message;
  EXPECT_EQ(videos->at(0).media.at(0).kind, Medium::Kind::kVideo);
  EXPECT_THAT(videos->at(0).media.at(0).files, ElementsAre(dir_.file("b.png"), dir_.file("a.png")));
  EXPECT_EQ(videos->at(1).media.at(0).kind, Medium::Kind::kVideo);
}

TEST_F(Datasets, BoxesBecomeFractionsOfThePicture) {
  const auto samples =
      jsonl(TaskType::kDetection,
            R"({"image": "a.png", "boxes": [{"label": "car", "box": [0, 0.25, 0.5, 1]}]}
{"image": "a.png", "label": "car", "boxes": [[10, 5, 20, 20]], "box_unit": "pixels"}
{"image": "a.png", "label": "car", "boxes": [[10, 5, 20, 20]], "box_unit": "pixels", "width": 80, "height": 40}
{"image": "a.png", "label": "car", "boxes": [[-0.4, 0, 40.4, 20]], "box_unit": "pixels"}
{"image": "a.png", "boxes": []}
)");
  ASSERT_TRUE(samples.ok()) << samples.error().message;
  EXPECT_EQ(samples->at(0).boxes.at(0).label, "car");
  EXPECT_EQ(samples->at(0).boxes.at(0).box.y0, 0.25);
  EXPECT_EQ(samples->at(1).boxes.at(0).label, "car");
  EXPECT_EQ(samples->at(1).boxes.at(0).box.x0, 0.25) << "of the picture's own 40 pixels";
  EXPECT_EQ(samples->at(1).boxes.at(0).box.y1, 1);
  EXPECT_EQ(samples->at(2).boxes.at(0).box.x0, 0.125);
  EXPECT_EQ(samples->at(3).boxes.at(0).box.x0, 0) << "rounding of half a pixel";
  EXPECT_EQ(samples->at(3).boxes.at(0).box.x1, 1);
  EXPECT_TRUE(samples->at(4).boxes.empty());
}

TEST_F(Datasets, MediaPathsStartAtTheRootAndLimitStopsReading) {
  folder("media");
  picture("media/c.png");
  source_.media_root = dir_.file("media");
  source_.limit = 1;
  const auto samples =
      jsonl(TaskType::kClassification, "{\"image\": \"c.png\", \"label\": \"cat\"}\nbroken\n");
  ASSERT_TRUE(samples.ok()) << samples.error().message;
  EXPECT_THAT(samples->at(0).media.at(0).files, ElementsAre(dir_.file("media/c.png")));
}

TEST_F(Datasets, LineErrorsAreNamed) {
  using enum TaskType;
  EXPECT_THAT(fault_of(kClassification, R"({"image": "a.png")"),
              HasSubstr("the line is not valid JSON: parse error at line 1, column 18"));
  EXPECT_THAT(fault_of(kClassification, "{\"image\": \"\xff\"}"), HasSubstr("not valid JSON"));
  EXPECT_EQ(fault_of(kClassification, "[]"), "a line must be a JSON object");
  EXPECT_EQ(fault_of(kClassification, R"({"label": "cat"})"),
            "exactly one of \"image\", \"images\", \"video\", \"frames\" is required");
  EXPECT_EQ(fault_of(kClassification, R"({"image": "a.png", "video": "clip.mp4", "label": "cat"})"),
            "exactly one of \"image\", \"images\", \"video\", \"frames\" is required");
  EXPECT_EQ(fault_of(kClassification, R"({"image": "c.png", "label": "cat"})"),
            "there is no file " + dir_.file("c.png"));
  EXPECT_EQ(fault_of(kClassification, R"({"image": "a.png"})"),
            "there is no label, which classification needs");
  EXPECT_EQ(fault_of(kClassification, R"({"image": "a.png", "label": 3})"),
            "\"label\" must be a string");
  EXPECT_EQ(fault_of(kClassification, R"({"image": "a.png", "labels": []})"),
            "\"labels\" must be a list of texts");
  EXPECT_EQ(fault_of(kClassification, R"({"image": "a.png", "labels": ["cat", "dog"]})"),
            "there are several labels, but the task has no multi_label head");
  EXPECT_EQ(fault_of(kQuestionAnswering, R"({"image": "a.png", "answer": "a"})"),
            "there is no question, which question_answering needs");
  EXPECT_EQ(fault_of(kQuestionAnswering, R"({"image": "a.png", "question": "q"})"),
            "there is no answer, which question_answering needs");
  EXPECT_EQ(fault_of(kQuestionAnswering,
                     R"({"image": "a.png", "question": "q", "prompt": "q", "answer": "a"})"),
            "\"question\" and \"prompt\" exclude each other");
  EXPECT_EQ(fault_of(kCaptioning, R"({"image": "a.png", "label": "cat"})"),
            "there is no answer, which captioning needs");
  EXPECT_EQ(fault_of(kVideo, R"({"image": "a.png", "label": "cat"})"),
            "there is no video, which video needs");
  EXPECT_EQ(fault_of(kVideo, R"({"video": "clip.mp4", "answer": "falls"})"),
            "there is no label, which a head and top1 need");
}

TEST_F(Datasets, BoxErrorsAreNamed) {
  using enum TaskType;
  EXPECT_EQ(fault_of(kDetection, R"({"image": "a.png"})"), "\"boxes\" is missing");
  EXPECT_EQ(fault_of(kDetection, R"({"images": ["a.png", "b.png"], "boxes": []})"),
            "there must be one picture, which detection needs");
  EXPECT_EQ(fault_of(kDetection, R"({"image": "a.png", "boxes": [[0, 0, 1, 1]]})"),
            "a box has no label, which detection needs");
  EXPECT_EQ(fault_of(kGrounding, R"({"image": "a.png", "boxes": []})"),
            "there is no box, which grounding needs");
  EXPECT_EQ(fault_of(kGrounding, R"({"image": "a.png", "boxes": [[0, 0, 1]]})"),
            "a box must be four numbers [x0, y0, x1, y1]");
  EXPECT_EQ(fault_of(kGrounding, R"({"image": "a.png", "boxes": [{"label": "a"}]})"),
            "one of \"boxes\" has no \"box\"");
  EXPECT_EQ(fault_of(kGrounding, R"({"image": "a.png", "boxes": [[0, 0, 1.1, 1]]})"),
            "the box [0, 0, 1.1, 1] is outside the 1 x 1 picture");
  EXPECT_EQ(fault_of(kGrounding,
                     R"({"image": "a.png", "boxes": [[0, 0, 41, 20]], "box_unit": "pixels"})"),
            "the box [0, 0, 41, 20] is outside the 40 x 20 picture");
  EXPECT_EQ(fault_of(kGrounding, R"({"image": "a.png", "boxes": [[0.5, 0, 0.5, 1]]})"),
            "the box [0.5, 0, 0.5, 1] has no area");
  EXPECT_EQ(
      fault_of(kGrounding, R"({"image": "a.png", "boxes": [[0, 0, 1, 1]], "box_unit": "cm"})"),
      "\"box_unit\" must be \"share\" or \"pixels\"");
  EXPECT_EQ(
      fault_of(kGrounding,
               R"({"image": "a.png", "boxes": [[0, 0, 1, 1]], "box_unit": "pixels", "width": 4})"),
      "\"width\" and \"height\" must be given together");
  EXPECT_THAT(fault_of(kGrounding,
                       R"({"image": "clip.mp4", "boxes": [[0, 0, 1, 1]], "box_unit": "pixels"})"),
              HasSubstr("clip.mp4: the image is"));
}

TEST_F(Datasets, LabelsOutsideTheTaskAreRefused) {
  task_.labels = {"cat", "dog"};
  EXPECT_EQ(fault_of(TaskType::kClassification, R"({"image": "a.png", "label": "cow"})"),
            "the label \"cow\" is not one of the task's (cat, dog)");
  EXPECT_EQ(fault_of(TaskType::kDetection,
                     R"({"image": "a.png", "label": "cow", "boxes": [[0, 0, 1, 1]]})"),
            "the label \"cow\" is not one of the task's (cat, dog)");
  task_.head = HeadSpec{.multi_label = true};
  const auto several =
      jsonl(TaskType::kClassification, R"({"image": "a.png", "labels": ["dog", "cat"]})");
  ASSERT_TRUE(several.ok()) << several.error().message;
  EXPECT_THAT(several->at(0).labels, ElementsAre("dog", "cat"));
  EXPECT_EQ(fault_of(TaskType::kClassification, R"({"image": "a.png", "labels": ["cat", "cat"]})"),
            "the label \"cat\" is repeated");
}

TEST_F(Datasets, EmptyMissingAndHugeFilesAreErrors) {
  const std::string path = dir_.file("data.jsonl");
  EXPECT_EQ(error(jsonl(TaskType::kClassification, "\n \n")), path + " is empty: it has no sample");
  EXPECT_EQ(error(jsonl(TaskType::kClassification, "{}" + std::string(2 << 20, ' '))),
            path + ":1: the line is longer than 1048576 bytes");
  EXPECT_EQ(error(read(TaskType::kClassification, DataSource::Format::kJsonl, dir_.file("none"))),
            dir_.file("none") + " does not exist");
  EXPECT_EQ(error(read(TaskType::kClassification, DataSource::Format::kJsonl, dir_.path())),
            dir_.path() + " cannot be read as a file");
}

TEST_F(Datasets, ClassFoldersAreInterleaved) {
  for (const char* name : {"c/dog", "c/cat"}) folder(name);
  for (const char* name : {"c/dog/1.png", "c/cat/2.PNG", "c/cat/1.png", "c/cat/3.png", "c/.hidden"})
    picture(name);
  auto samples = classes("c");
  ASSERT_TRUE(samples.ok()) << samples.error().message;
  std::vector<std::string> origins;
  for (const Sample& sample : *samples)
    origins.push_back(sample.labels.at(0) + " " + sample.origin.substr(dir_.path().size()));
  EXPECT_THAT(origins, ElementsAre("cat /c/cat/1.png", "dog /c/dog/1.png", "cat /c/cat/2.PNG",
                                   "cat /c/cat/3.png"));
  source_.limit = 2;
  EXPECT_EQ(classes("c")->size(), 2u);
  task_.labels = {"cat", "cow"};
  EXPECT_EQ(error(classes("c")),
            dir_.file("c/dog/1.png") + ": the label \"dog\" is not one of the task's (cat, cow)");
}

TEST_F(Datasets, FolderErrorsAreNamed) {
  folder("c/cat");
  EXPECT_EQ(error(classes("c")), dir_.file("c/cat") + " is empty: the class cat has no sample");
  dir_.write("c/cat/notes.txt", "");
  EXPECT_EQ(
      error(classes("c")),
      dir_.file("c/cat/notes.txt") +
          " is not a picture (.jpg, .jpeg, .png, .webp, .gif, .heic, .heif, .avif, .bmp, .tif, "
          ".tiff)");
  dir_.write("c/a.txt", "");
  EXPECT_EQ(error(classes("c")),
            dir_.file("c/a.txt") + " is not a folder: only class folders may be here");
  folder("empty");
  EXPECT_EQ(error(classes("empty")), dir_.file("empty") + " is empty: it has no class folder");
  folder("v/falls");
  dir_.write("v/falls/1.mp4", "");
  EXPECT_EQ(classes("v", TaskType::kVideo)->at(0).media.at(0).kind, Medium::Kind::kVideo);
  EXPECT_EQ(
      error(classes("v")),
      dir_.file("v/falls/1.mp4") +
          " is not a picture (.jpg, .jpeg, .png, .webp, .gif, .heic, .heif, .avif, .bmp, .tif, "
          ".tiff)");
}

TEST_F(Datasets, UnlabelledMediaComeFromFoldersOrJsonLines) {
  folder("u/b");
  for (const char* name : {"u/b/1.png", "u/c.png", "u/a.png"}) picture(name);
  source_.format = DataSource::Format::kFolder;
  source_.path = dir_.file("u");
  const auto pictures = read_unlabelled(source_, task_);
  ASSERT_TRUE(pictures.ok()) << pictures.error().message;
  ASSERT_EQ(pictures->size(), 3u);
  EXPECT_EQ(pictures->at(0).origin, dir_.file("u/a.png"));
  EXPECT_EQ(pictures->at(1).origin, dir_.file("u/b/1.png"));

  source_.format = DataSource::Format::kJsonl;
  source_.path = dir_.write(
      "u.jsonl", "{\"image\": \"a.png\", \"question\": \"q\", \"label\": \"not looked at\"}");
  const auto lines = read_unlabelled(source_, task_);
  ASSERT_TRUE(lines.ok()) << lines.error().message;
  EXPECT_EQ(lines->at(0).question, "q");
  EXPECT_TRUE(lines->at(0).labels.empty());
  task_.type = TaskType::kQuestionAnswering;
  source_.path = dir_.write("u.jsonl", "{\"image\": \"a.png\"}");
  EXPECT_EQ(error(read_unlabelled(source_, task_)),
            dir_.file("u.jsonl") + ":1: there is no question, which question_answering needs");
  source_.format = DataSource::Format::kCoco;
  EXPECT_FALSE(read_unlabelled(source_, task_).ok());
}

}  // namespace
}  // namespace valora::generator
