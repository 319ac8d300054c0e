// The list of samples that the page offers: what is read, and what is refused.
#include "server/page/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"

namespace valora::server {
namespace {

using ::testing::HasSubstr;

class Samples : public ::testing::Test {
 protected:
  Samples() {
    dir_.write("a.png", "picture");
    dir_.write("b.MP4", "clip");
  }
  Result<std::vector<Sample>> read(const std::string& list) {
    return read_samples(dir_.write("samples.json", list));
  }
  std::string refusal(const std::string& list) {
    const auto read_list = read(list);
    return read_list.ok() ? "" : read_list.error().message;
  }
  valora::testing::TempDir dir_;
};

TEST_F(Samples, ReadsFilesQuestionsAndWhomToAsk) {
  const auto samples = read(R"([
    {"media": "a.png", "question": "Which?", "task": "digits", "adapter": "adapter-1", "id": 1},
    {"media": "a.png", "question": "Which?", "task": "digits", "adapter": null},
    {"media": "a.png", "question": "Which?"},
    {"media": "./b.MP4", "task": null, "question": null}])");
  ASSERT_TRUE(samples.ok()) << samples.error().message;
  ASSERT_EQ(samples->size(), 3u);  // the second entry repeats the first one
  const Sample &first = samples->front(), &base = samples->at(1), &clip = samples->back();
  EXPECT_EQ(std::tuple(first.model, first.question, first.name, first.content_type, *first.bytes),
            std::tuple("digits", "Which?", "a.png", "image/png", "picture"));
  EXPECT_EQ(base.model, "");
  EXPECT_EQ(base.bytes, first.bytes);  // in memory once
  EXPECT_EQ(std::tuple(clip.model, clip.question, clip.content_type, *clip.bytes),
            std::tuple("", "", "video/mp4", "clip"));
}

TEST_F(Samples, RefusesListsByFileAndEntry) {
  EXPECT_THAT(refusal("{}"), HasSubstr("samples.json: a list of samples is expected"));
  EXPECT_THAT(refusal("["), HasSubstr("samples.json"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("samples.json: entry 1: it must be an object"));
  EXPECT_THAT(refusal(R"([{"media": "a.png"}, {"question": "x"}])"),
              HasSubstr("entry 2: \"media\" is missing"));
  EXPECT_THAT(refusal(R"([{"media": 1}])"), HasSubstr("\"media\" must be a text"));
  EXPECT_THAT(refusal(R"([{"media": "a.png", "task": 1}])"), HasSubstr("\"task\" must be a text"));
  EXPECT_THAT(refusal(R"([{"media": "none.png"}])"), HasSubstr("none.png"));
  EXPECT_THAT(refusal(R"([{"media": "samples.json"}])"), HasSubstr("samples.json is not a .png"));
}

TEST_F(Samples, BoundsTheirNumberAndTheirBytes) {
  std::string many = "[";
  for (int i = 0; i < 257; ++i)
    many += (i ? "," : "") + (R"({"media": "a.png", "question": ")" + std::to_string(i) + "\"}");
  EXPECT_THAT(refusal(many + "]"), HasSubstr("entry 257: a list has at most 256 samples"));
  dir_.write("c.png", std::string(size_t{17} << 20, 'x'));
  dir_.write("d.png", std::string(size_t{17} << 20, 'x'));
  EXPECT_EQ(refusal(R"([{"media": "c.png"}, {"media": "c.png", "question": "x"}])"), "");
  EXPECT_THAT(refusal(R"([{"media": "c.png"}, {"media": "d.png"}])"),
              HasSubstr("entry 2: the files have more than 32 MiB together"));
}

}  // namespace
}  // namespace valora::server
