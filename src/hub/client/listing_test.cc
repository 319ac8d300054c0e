#include "hub/client/listing.h"

#include <gmock/gmock.h>

#include "base/json/json.h"

namespace valora::hub {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json listing_json(Json siblings) {
  return {{"sha", std::string(40, 'c')}, {"siblings", std::move(siblings)}};
}

TEST(Listing, SizesAndDigestsAreRead) {
  const Json json = listing_json(
      {{{"rfilename", "model.safetensors"},
        {"size", 134},
        {"blobId", std::string(40, 'b')},
        {"lfs", {{"sha256", std::string(64, 'a')}, {"size", 5'000'000'000}, {"pointerSize", 134}}}},
       {{"rfilename", "config.json"}, {"size", 7}, {"blobId", std::string(40, 'd')}},
       {{"rfilename", "onnx/model.onnx"}},
       {{"rfilename", "README.md"}}});
  const auto listing = read_listing(json.dump(), "x");
  ASSERT_TRUE(listing.ok());
  ASSERT_EQ(listing->files.size(), 3u);
  EXPECT_EQ(listing->commit, std::string(40, 'c'));
  const RemoteFile* weights = find_file(listing->files, "model.safetensors");
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(weights->size, 5'000'000'000u);
  EXPECT_EQ(weights->digest, std::string(64, 'a'));
  EXPECT_EQ(find_file(listing->files, "config.json")->digest, std::string(40, 'd'));
  EXPECT_FALSE(find_file(listing->files, "README.md")->size);
}

TEST(Listing, HostileAnswersAreRefused) {
  const auto reason = [](const Json& json) {
    const auto listing = read_listing(json.dump(), "the hub");
    return listing.ok() ? "fine" : listing.error().message;
  };
  EXPECT_THAT(reason(Json::array()), HasSubstr("not an object"));
  EXPECT_THAT(reason({{"sha", "../../x"}, {"siblings", Json::array()}}), HasSubstr("commit"));
  EXPECT_THAT(reason(listing_json({{{"rfilename", ".."}}})), HasSubstr("named"));
  EXPECT_THAT(reason(listing_json({{{"rfilename", "a\\..\\b"}}})), HasSubstr("named"));
  EXPECT_THAT(reason(listing_json({{{"rfilename", "a\nb"}}})), HasSubstr("named \"a\\nb\""));
  EXPECT_THAT(reason(listing_json({{{"rfilename", "a"}}, {{"rfilename", "a"}}})),
              HasSubstr("twice"));
  EXPECT_THAT(reason(listing_json({{{"rfilename", "a"}, {"size", -1}}})), HasSubstr("negative"));
  EXPECT_THAT(reason(listing_json({{{"rfilename", "a"}, {"blobId", "../../etc"}}})),
              HasSubstr("digest of a"));
  EXPECT_THAT(reason(listing_json({{{"rfilename", 3}}})), HasSubstr("rfilename"));
}

TEST(Shards, NamesAreOfFilesOnce) {
  const auto shards = read_shards(R"({"weight_map": {"a": "2.s", "b": "1.s", "c": "2.s"}})", "x");
  ASSERT_TRUE(shards.ok());
  EXPECT_THAT(*shards, ElementsAre("1.s", "2.s"));
  for (const char* bad : {"{}", "[]", R"({"weight_map": {"a": "../x"}})",
                          R"({"weight_map": {"a": 1}})", R"({"weight_map": ["a"]})"})
    EXPECT_FALSE(read_shards(bad, "x").ok()) << bad;
}

}  // namespace
}  // namespace valora::hub
