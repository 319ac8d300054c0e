#include "cli/rows/run_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/files/file.h"
#include "base/testing/temp_dir.h"

namespace valora::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

server::AnsweredRow row(const std::string& name, const std::string& content, int status = 200) {
  const OrderedJson body =
      status == 200
          ? OrderedJson{{"choices",
                         {{{"message", {{"content", content}}}, {"finish_reason", "stop"}}}}}
          : OrderedJson{{"error", {{"message", content}}}};
  return {name, "req", {.status = status, .body = body.dump()}};
}

class OutputTest : public ::testing::Test {
 protected:
  Result<RunOutput> open(const std::string& name, OutputFormat format, AnswerKind kind,
                         const std::string& prompt = "p", bool fresh = false) {
    return RunOutput::open(
        {dir_.file(name), format, kind, {{"prompt", prompt}}, fresh, {{"coin", "card"}, "coins"}});
  }
  Status write(RunOutput& output, const std::vector<server::AnsweredRow>& rows) {
    return output.write(rows, [](const std::string&) { return std::string(); });
  }
  std::string text(const std::string& name) { return *read_file(dir_.file(name), 1 << 20); }

  testing::TempDir dir_;
};

TEST_F(OutputTest, EveryCutIsContinuedWithTheRowsThatAreMissing) {
  struct Case {
    const char* name;
    OutputFormat format;
    AnswerKind kind;
  };
  const std::vector<server::AnsweredRow> rows = {row("a", "one\n\"two\",\n"), row("b,\n", "x"),
                                                 row("c", "no", 400)};
  for (const Case& c : {Case{"o.jsonl", OutputFormat::kJsonl, AnswerKind::kText},
                        Case{"q.jsonl", OutputFormat::kOpenAi, AnswerKind::kText},
                        Case{"o.csv", OutputFormat::kCsv, AnswerKind::kText}}) {
    {
      auto output = open(c.name, c.format, c.kind, "p", true);
      ASSERT_TRUE(output.ok()) << output.error().message;
      ASSERT_TRUE(write(*output, rows).ok());
    }
    const std::string whole = text(c.name);
    for (size_t size = 0; size < whole.size(); size += 7) {
      (void)dir_.write(c.name, whole.substr(0, size));
      auto output = open(c.name, c.format, c.kind);
      ASSERT_TRUE(output.ok()) << c.name << " " << size << ": " << output.error().message;
      std::vector<server::AnsweredRow> rest;
      for (const auto& each : rows)
        if (!output->done().contains(each.name)) rest.push_back(each);
      EXPECT_LT(output->done().size(), 3u);
      ASSERT_TRUE(write(*output, rest).ok());
      EXPECT_THAT(output->done(), UnorderedElementsAre("a", "b,\n", "c"));
      EXPECT_EQ(output->failed(), 1u);
      if (c.format == OutputFormat::kOpenAi) continue;  // its rows have random ids
      EXPECT_EQ(text(c.name), whole) << c.name << " " << size;
    }
  }
}

TEST_F(OutputTest, OutputOfAnotherRunIsRefused) {
  ASSERT_TRUE(open("o.jsonl", OutputFormat::kJsonl, AnswerKind::kText).ok());
  const auto other = open("o.jsonl", OutputFormat::kJsonl, AnswerKind::kText, "q");
  EXPECT_EQ(other.error().code, ErrorCode::kConflict);
  EXPECT_THAT(other.error().message, HasSubstr("another \"prompt\": \"p\"; give another --output"));
  (void)dir_.write("notes.csv", "my own table\n");
  EXPECT_THAT(open("notes.csv", OutputFormat::kCsv, AnswerKind::kText).error().message,
              HasSubstr("valora run did not begin it"));
  EXPECT_EQ(text("notes.csv"), "my own table\n");
  EXPECT_TRUE(open("o.jsonl", OutputFormat::kJsonl, AnswerKind::kText, "q", true).ok());
}

TEST_F(OutputTest, TwoProcessesDoNotWriteOneOutput) {
  const auto first = open("o.jsonl", OutputFormat::kJsonl, AnswerKind::kText);
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(open("o.jsonl", OutputFormat::kJsonl, AnswerKind::kText).error().message,
              HasSubstr("is being written by another process"));
}

TEST_F(OutputTest, ARowWithinThatIsNoneIsNotCut) {
  ASSERT_TRUE(open("o.jsonl", OutputFormat::kJsonl, AnswerKind::kText).ok());
  const std::string edited = "{\"name\":\"a\"}\nhello\n{\"name\":\"b\"}\n";
  (void)dir_.write("o.jsonl", edited);
  EXPECT_THAT(open("o.jsonl", OutputFormat::kJsonl, AnswerKind::kText).error().message,
              HasSubstr("row 2"));
  (void)dir_.write("o.jsonl", "{\"name\":\"a\"}\n{\"name\":\"a\"}\n{\"name\":\"b\"}\n");
  EXPECT_THAT(open("o.jsonl", OutputFormat::kJsonl, AnswerKind::kText).error().message,
              HasSubstr("a has two rows"));
}

TEST_F(OutputTest, LabelsAndBoxesHaveTheirColumns) {
  auto labels = open("l.csv", OutputFormat::kCsv, AnswerKind::kLabels);
  ASSERT_TRUE(write(*labels, {row("a", R"({"label": "rain"})"),
                              row("b", R"({"labels": ["rain", "wind"]})"), row("c", "no", 400)})
                  .ok());
  EXPECT_EQ(text("l.csv"),
            "name,answer,label,error\na,rain,rain,\nb,rain; wind,rain; wind,\nc,,,no\n");
  auto boxes = open("b.jsonl", OutputFormat::kJsonl, AnswerKind::kBoxes);
  ASSERT_TRUE(write(*boxes, {row("a", R"([{"label": "coin", "box": [1.5, 2, 3, 4]}])")}).ok());
  EXPECT_EQ(text("b.jsonl"),
            R"({"name":"a","boxes":[{"label":"coin","box":[1.5,2,3,4]}],"finish_reason":"stop"})"
            "\n");
}

TEST(Coco, BoxesBecomeCornersAndSizes) {
  const std::vector<OrderedJson> rows = {
      OrderedJson::parse(R"({"name":"b.png","size":[64,48],"boxes":[
        {"label":"card","box":[1.9,18.6,25.0,40.3]},{"label":null,"box":[0,0,10,20]}]})"),
      OrderedJson::parse(R"({"name":"broken.png","error":{"status":400,"message":"broken"}})"),
      OrderedJson::parse(R"({"name":"a.png","size":[10,10],"boxes":[]})")};
  const OrderedJson coco = *coco_of(rows, {{"coin", "card"}, "coins"});
  EXPECT_EQ(coco["images"], OrderedJson::parse(R"([
    {"id":1,"file_name":"a.png","width":10,"height":10},
    {"id":2,"file_name":"b.png","width":64,"height":48}])"));
  EXPECT_EQ(coco["annotations"][0], OrderedJson::parse(R"({"id":1,"image_id":2,"category_id":2,
    "bbox":[1.9,18.6,23.1,21.7],"area":501.27,"iscrowd":0})"));
  EXPECT_EQ(coco["annotations"][1]["category_id"], 3);
  EXPECT_EQ(coco["categories"][2], OrderedJson::parse(R"({"id":3,"name":"coins"})"));
  EXPECT_EQ(coco["errors"][0]["file_name"], "broken.png");
}

TEST(OutputFormats, FollowFromTheEnding) {
  EXPECT_EQ(*output_format("a.jsonl", false, AnswerKind::kText), OutputFormat::kJsonl);
  EXPECT_EQ(*output_format("a.jsonl", true, AnswerKind::kText), OutputFormat::kOpenAi);
  EXPECT_EQ(*output_format("a.json", false, AnswerKind::kBoxes), OutputFormat::kCoco);
  EXPECT_FALSE(output_format("a.json", false, AnswerKind::kLabels).ok());
  EXPECT_FALSE(output_format("a.txt", false, AnswerKind::kText).ok());
}

}  // namespace
}  // namespace valora::cli
