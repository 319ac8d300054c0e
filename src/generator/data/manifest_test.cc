#include "generator/data/manifest.h"

#include <gmock/gmock.h>

#include "base/files/file.h"
#include "base/testing/temp_dir.h"

namespace valora::generator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::valora::testing::TempDir;

class ManifestTest : public ::testing::Test {
 protected:
  ManifestTest() {
    for (const char* folder : {"one", "two"})
      std::filesystem::create_directory(folder_.file(folder));
  }
  // The error message, which must name the file; empty if there is no error.
  std::string error_of(const std::string& text) {
    const std::string path = folder_.write("manifest.json", text);
    const auto read = read_manifest(path);
    if (read.ok()) return {};
    EXPECT_THAT(read.error().message, HasSubstr(path));
    return read.error().message;
  }
  TempDir folder_;
};

TEST_F(ManifestTest, ReadsEveryField) {
  const auto manifest = read_manifest(folder_.write("m.json", R"({"tasks": {
    "plates": {"adapter": "one", "head": "plates", "prompt": "Which?", "metric": "top1", "floor": 0.8, "accuracy": 1,
               "labels": ["de", "fr"], "boxes": {"scale": 100, "labels": false}},
    "captions.v2": {"adapter": ")" + folder_.file("two/") + R"(", "head": null}}})"));
  ASSERT_TRUE(manifest.ok()) << manifest.error().message;
  ASSERT_EQ(manifest->tasks.size(), 2);
  const ManifestEntry& plates = manifest->tasks.at("plates");
  EXPECT_EQ(plates.adapter, folder_.file("one"));
  EXPECT_EQ(plates.head, "plates");
  EXPECT_EQ(plates.prompt, "Which?");
  EXPECT_EQ(plates.metric, "top1");
  EXPECT_EQ(plates.floor, 0.8);
  EXPECT_EQ(plates.accuracy, 1.0);
  EXPECT_THAT(plates.labels, ::testing::ElementsAre("de", "fr"));
  ASSERT_TRUE(plates.boxes);
  EXPECT_EQ(plates.boxes->scale, 100);
  EXPECT_FALSE(plates.boxes->labels);
  const ManifestEntry& captions = manifest->tasks.at("captions.v2");
  EXPECT_EQ(captions.adapter, folder_.file("two")) << "without the slash at its end";
  EXPECT_EQ(captions.head, std::nullopt);
  EXPECT_EQ(captions.prompt, "");
  EXPECT_EQ(captions.floor, std::nullopt);
}

TEST_F(ManifestTest, RoundTrips) {
  Manifest manifest;
  manifest.tasks["a"] = {
      folder_.file("one"),  "score", "Which \"digit\"?\n", "top1", 0.75, 0.8125, {"x", "ü\""},
      BoxFormat{100, false}};
  manifest.tasks["b"] = {
      std::filesystem::temp_directory_path().string(), {}, "", "cider", {}, {}, {}, {}};
  const std::string path = folder_.file("m.json");
  ASSERT_TRUE(write_manifest(manifest, path).ok());
  const auto text = read_file(path, 10000);
  EXPECT_THAT(*text, HasSubstr("\"adapter\": \"one\"")) << "relative below the manifest's folder";
  const auto read = read_manifest(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->tasks.size(), 2);
  EXPECT_EQ(read->tasks.at("a").adapter, folder_.file("one"));
  EXPECT_EQ(read->tasks.at("a").head, "score");
  EXPECT_EQ(read->tasks.at("a").prompt, "Which \"digit\"?\n");
  EXPECT_EQ(read->tasks.at("a").floor, 0.75);
  EXPECT_EQ(read->tasks.at("a").accuracy, 0.8125);
  EXPECT_EQ(read->tasks.at("a").labels, manifest.tasks["a"].labels);
  ASSERT_TRUE(read->tasks.at("a").boxes);
  EXPECT_EQ(read->tasks.at("a").boxes->scale, 100);
  EXPECT_FALSE(read->tasks.at("a").boxes->labels);
  EXPECT_FALSE(read->tasks.at("b").boxes);
  EXPECT_EQ(read->tasks.at("b").adapter,
            std::filesystem::temp_directory_path().lexically_normal().string());
  EXPECT_EQ(read->tasks.at("b").head, std::nullopt);
}

TEST_F(ManifestTest, FailedWriteKeepsTheOldFile) {
  const Manifest manifest;
  EXPECT_THAT(write_manifest(manifest, folder_.file("nowhere/m.json")).error().message,
              HasSubstr("cannot be written"));
  EXPECT_THAT(write_manifest(manifest, folder_.file("one")).error().message,
              HasSubstr("cannot be written"));
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    ++entries;
  EXPECT_EQ(entries, 2) << "no draft stays";
}

TEST_F(ManifestTest, ErrorsNameTheFileAndCause) {
  EXPECT_EQ(read_manifest(folder_.file("none.json")).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(error_of("{"), HasSubstr("not valid JSON"));
  for (const char* text : {"[]", "1", "{}", R"({"tasks": []})", R"({"tasks": null})"})
    EXPECT_THAT(error_of(text), HasSubstr("a manifest is {\"tasks\"")) << text;
  EXPECT_THAT(error_of(R"({"tasks": {}, "task": {}})"), HasSubstr("unknown key \"task\""));
  EXPECT_THAT(error_of(R"({"tasks": {"a": {"adapter": "one"}, "a": {"adapter": "two"}}})"),
              HasSubstr("\"a\" twice"));
  EXPECT_THAT(error_of(std::string(100, '[')), HasSubstr("nests deeper"));
  EXPECT_EQ(error_of(R"({"tasks": {}})"), "");
}

TEST_F(ManifestTest, ErrorsNameTheTask) {
  const auto error_in = [&](const std::string& entry) {
    return error_of(R"({"tasks": {"plates": )" + entry + "}}");
  };
  const auto says = [](const char* words) {
    return AllOf(HasSubstr("task \"plates\": "), HasSubstr(words));
  };
  EXPECT_THAT(error_in("7"), says("must be an object"));
  EXPECT_THAT(error_in("{}"), says("\"adapter\" is missing"));
  EXPECT_THAT(error_in(R"({"adapter": 1})"), says("\"adapter\" must be a string"));
  EXPECT_THAT(error_in(R"({"adapter": ""})"), says("\"adapter\" is empty"));
  EXPECT_THAT(error_in(R"({"adapter": "one\u0000"})"), says("zero byte"));
  EXPECT_THAT(error_in(R"({"adapter": "three"})"),
              AllOf(says("is not a folder"), HasSubstr(folder_.file("three"))));
  EXPECT_THAT(error_in(R"({"adapter": "manifest.json"})"), says("is not a folder"));
  EXPECT_THAT(error_in(R"({"adapter": "one", "heads": "x"})"), says("unknown key \"heads\""));
  EXPECT_THAT(error_in(R"({"adapter": "one", "head": ""})"), says("\"head\" is empty"));
  EXPECT_THAT(error_in(R"({"adapter": "one", "head": ["x"]})"), says("\"head\" must be a string"));
  EXPECT_THAT(error_in(R"({"adapter": "one", "floor": 80})"), says("\"floor\" must be in 0 … 1"));
  EXPECT_THAT(error_in(R"({"adapter": "one", "floor": "0.8"})"),
              says("\"floor\" must be a number"));
  EXPECT_THAT(error_in(R"({"adapter": "one", "accuracy": -0.1})"),
              says("\"accuracy\" must be in 0 … 1"));
  EXPECT_THAT(error_in(R"({"adapter": "one", "metric": 1})"), says("\"metric\" must be a string"));
  for (const char* labels : {"1", "{}", "[1]"})
    EXPECT_THAT(error_in(std::string(R"({"adapter": "one", "labels": )") + labels + "}"),
                says("\"labels\" must be a list of strings"));
  for (const char* labels : {R"([""])", R"(["a", "b", "a"])"})
    EXPECT_THAT(error_in(std::string(R"({"adapter": "one", "labels": )") + labels + "}"),
                says("an empty or a repeated label"));
  EXPECT_THAT(error_in(R"({"adapter": "one", "boxes": true})"),
              says("\"boxes\" must be an object"));
  EXPECT_THAT(error_in(R"({"adapter": "one", "boxes": {"size": 1}})"),
              says("unknown key \"size\""));
  EXPECT_THAT(error_in(R"({"adapter": "one", "boxes": {"scale": 0}})"),
              says("\"boxes.scale\" must be in 1 … 1000000"));
}

TEST_F(ManifestTest, TaskNamesAreValidModelNames) {
  for (const std::string name : {"", "a b", "a/b", "a:b", "ä", "a,b"})
    EXPECT_THAT(error_of(R"({"tasks": {")" + name + R"(": {"adapter": "one"}}})"),
                HasSubstr("a name has 1 to 256 letters"))
        << name;
  const std::string message =
      error_of(R"({"tasks": {")" + std::string(5000, 'x') + R"(": {"adapter": "one"}}})");
  EXPECT_THAT(message, HasSubstr("a name has 1 to 256"));
  EXPECT_LT(message.size(), 600);
}

}  // namespace
}  // namespace valora::generator
