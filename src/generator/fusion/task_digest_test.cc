#include "generator/fusion/task_digest.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/temp_dir.h"

namespace valora::generator {
namespace {

using valora::testing::TempDir;

std::string digest_of_samples(const std::vector<Sample>& samples) {
  DigestBuilder builder;
  const Status added = add_validation(builder, samples, 2, {}, {});
  EXPECT_TRUE(added.ok()) << added.error().message;
  return builder.finish().hex();
}

TEST(TaskDigest, ChangedPictureUnderTheSamePathChangesIt) {
  const TempDir folder;
  const std::string path = folder.write("a.png", std::string(3 << 20, 'a'));
  const auto time = std::filesystem::last_write_time(path);
  const Sample sample{.media = {{Medium::Kind::kImage, {path}}}, .question = "?", .answer = "yes"};
  const std::string before = digest_of_samples({sample, sample});
  EXPECT_EQ(digest_of_samples({sample, sample}), before);
  folder.write("a.png", std::string((3 << 20) - 1, 'a') + "b");  // same size and time
  std::filesystem::last_write_time(path, time);
  EXPECT_NE(digest_of_samples({sample, sample}), before);
  folder.write("a.png", std::string(3 << 20, 'a'));
  EXPECT_EQ(digest_of_samples({sample, sample}), before) << "the path's old content again";
}

TEST(TaskDigest, DependsOnTheOrderOfSamples) {
  const Sample one{.question = "?", .answer = "yes"}, other{.question = "?", .answer = "no"};
  EXPECT_NE(digest_of_samples({one, other}), digest_of_samples({other, one}));
}

TEST(TaskDigest, MissingFileIsNamed) {
  DigestBuilder builder;
  const std::vector<Sample> samples{{.media = {{Medium::Kind::kImage, {"/nowhere/a.png"}}}}};
  const Status added = add_validation(builder, samples, 1, {}, {});
  ASSERT_FALSE(added.ok());
  EXPECT_NE(added.error().message.find("/nowhere/a.png"), std::string::npos);
}

TEST(TaskDigest, StopEndsReading) {
  const TempDir folder;
  const std::vector<Sample> samples{
      {.media = {{Medium::Kind::kImage, {folder.write("a.png", "a")}}}}};
  std::stop_source stop;
  stop.request_stop();
  DigestBuilder builder;
  EXPECT_EQ(add_validation(builder, samples, 1, {}, stop.get_token()).error().code,
            ErrorCode::kCancelled);
}

}  // namespace
}  // namespace valora::generator
