#include "hub/resolve.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/testing/temp_dir.h"

namespace valora::hub {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using valora::testing::TempDir;

class ResolveTest : public ::testing::Test {
 protected:
  ResolveTest() {
    settings_.cache = dir_.path();
    settings_.no_download = "HF_HUB_OFFLINE";
    settings_.endpoint = "http://127.0.0.1:9";  // nobody is asked
  }
  Result<Resolved> find(const std::string& text, Kind kind = Kind::kModel) {
    return resolve(text, kind, settings_, {});
  }
  std::string snapshot(const std::vector<std::string>& files) {
    const fs::path repository = fs::path(dir_.path()) / "models--own--model";
    const std::string commit(40, 'c');
    fs::create_directories(repository / "snapshots" / commit);
    fs::create_directories(repository / "refs");
    std::ofstream(repository / "refs/main") << commit;
    for (const std::string& file : files)
      std::ofstream(repository / "snapshots" / commit / file) << "{}";
    return (repository / "snapshots" / commit).string();
  }

  const TempDir dir_;
  HubSettings settings_;
};

TEST_F(ResolveTest, PathsStayAsTheyAre) {
  for (const std::string& text : {dir_.path(), std::string("./none/there"), std::string("model"),
                                  std::string("/none/there")}) {
    const auto found = find(text);
    ASSERT_TRUE(found.ok()) << text;
    EXPECT_EQ(found->path, text);
    EXPECT_EQ(found->id, "");
  }
}

TEST_F(ResolveTest, FolderWinsOverName) {
  snapshot({"config.json", "model.safetensors", "tokenizer.json"});
  const fs::path before = fs::current_path();
  fs::current_path(dir_.path());
  fs::create_directories("own/model");
  const auto found = find("own/model");
  fs::current_path(before);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->path, "own/model");
}

TEST_F(ResolveTest, CompleteSnapshotIsFound) {
  const std::string folder = snapshot({"config.json", "model.safetensors", "tokenizer.json"});
  settings_.no_download.clear();  // nothing is asked for
  for (const std::string text : {"own/model", "own/model@main"}) {
    const auto found = find(text);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(found->path, folder);
    EXPECT_EQ(found->id, "own/model");
  }
}

TEST_F(ResolveTest, WithoutDownloadsTheErrorSaysBothPossibilities) {
  const auto none = find("own/model@v1");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "own/model@v1 is no folder here and not in the cache " +
                                      dir_.path() + ", and HF_HUB_OFFLINE forbids loading it");
  snapshot({"config.json", "tokenizer.json"});
  EXPECT_THAT(find("own/model").error().message, HasSubstr("only in part in the cache"));
}

TEST_F(ResolveTest, FolderWithAllTensorsIsUsedOffline) {
  const std::string folder = snapshot({"config.json", "model.safetensors"});
  EXPECT_EQ(find("own/model").value().path, folder);
}

TEST_F(ResolveTest, HubThatCannotBeReachedIsSaid) {
  settings_.no_download.clear();
  const auto found = find("own/model");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(found.error().message, HasSubstr("http://127.0.0.1:9 cannot be reached"));
}

}  // namespace
}  // namespace valora::hub
