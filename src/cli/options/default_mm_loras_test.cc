#include "cli/options/json_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"

namespace valora::cli {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(const std::string& text) {
  const auto read = read_default_mm_loras(text, {"cats"});
  return read.ok() ? "" : read.error().message;
}

TEST(DefaultMmLoras, KnownNamePrecedesAPath) {
  const valora::testing::TempDir folder;
  folder.write("adapter_config.json", "{}");
  const std::string path = folder.path();
  const auto read =
      read_default_mm_loras(R"({"image":"cats","video":")" + path + "\"}", {"dogs", "cats"});
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].modality, "image");
  EXPECT_EQ((*read)[0].name, "cats");
  EXPECT_EQ((*read)[0].folder, "");
  EXPECT_EQ((*read)[1].modality, "video");
  EXPECT_EQ((*read)[1].name, "video");
  EXPECT_EQ((*read)[1].folder, path);
  const auto named = read_default_mm_loras(R"({"video":")" + path + "\"}", {path});
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->front().name, path) << "the name, although there is a folder";
  EXPECT_EQ(named->front().folder, "");
}

TEST(DefaultMmLoras, AcceptsAnEmptyObject) {
  for (const char* text : {"", "{}"}) {
    const auto read = read_default_mm_loras(text, {});
    ASSERT_TRUE(read.ok()) << text;
    EXPECT_TRUE(read->empty()) << text;
  }
}

TEST(DefaultMmLoras, RefusesUnknownModalitiesAndInvalidAdapters) {
  const valora::testing::TempDir empty;
  EXPECT_THAT(refusal_of(R"({"audio":"cats"})"), HasSubstr("audio is not supported"));
  EXPECT_THAT(refusal_of(R"({"smell":"cats"})"), HasSubstr("\"smell\""));
  EXPECT_THAT(refusal_of(R"({"image":"nobody"})"), HasSubstr("\"nobody\" is neither"));
  EXPECT_THAT(refusal_of(R"({"image":")" + std::string(empty.path()) + "\"}"),
              HasSubstr("adapter_config.json"));
  EXPECT_THAT(refusal_of(R"({"image":["cats"]})"), HasSubstr("name or the folder"));
  EXPECT_THAT(refusal_of(R"({"image":""})"), HasSubstr("name or the folder"));
  EXPECT_THAT(refusal_of("cats"), HasSubstr("--default-mm-loras"));
  EXPECT_THAT(refusal_of("[]"), HasSubstr("an object"));
}

}  // namespace
}  // namespace valora::cli
