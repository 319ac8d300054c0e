#include "hub/cache/hub_cache.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/testing/temp_dir.h"

namespace valora::hub {
namespace {

namespace fs = std::filesystem;
using valora::testing::TempDir;

const HubName kName{.owner = "Own", .name = "a.b"};
const std::string kCommit(40, 'c');

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

std::string content(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(HubCache, PublishedSnapshotIsFoundByItsRevisions) {
  const TempDir dir;
  const CachedRepository repository(dir.path(), kName);
  ASSERT_TRUE(repository.make_folders().ok());
  const std::vector<RemoteFile> files = {{"config.json", 2, std::string(40, 'a')},
                                         {"model.safetensors", 1, std::string(64, 'b')}};
  write(repository.blob(files[0].digest), "{}");
  write(repository.blob(files[1].digest), "x");
  EXPECT_FALSE(repository.find_snapshot("main"));
  const auto folder = repository.publish(kCommit, "refs/pr/1", files);
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  EXPECT_EQ(*folder, dir.path() + "/models--Own--a.b/snapshots/" + kCommit);
  EXPECT_EQ(content(fs::path(*folder) / "config.json"), "{}");
  EXPECT_EQ(fs::read_symlink(fs::path(*folder) / "config.json"), "../../blobs/" + files[0].digest);
  EXPECT_EQ(repository.find_snapshot("refs/pr/1"), *folder);
  EXPECT_EQ(repository.find_snapshot(kCommit), *folder);
  EXPECT_FALSE(repository.find_snapshot("main"));
  EXPECT_FALSE(repository.find_snapshot(std::string(40, 'd')));
  EXPECT_EQ(content(repository.path() + "/refs/refs/pr/1"), kCommit);
  for (const auto& entry : fs::directory_iterator(repository.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with('.')) << entry.path();
}

TEST(HubCache, FilesOfSubfoldersAreLinked) {
  const TempDir dir;
  const CachedRepository repository(dir.path(), kName);
  ASSERT_TRUE(repository.make_folders().ok());
  const RemoteFile pooling{"1_Pooling/config.json", 2, std::string(40, 'c')};
  write(repository.blob(pooling.digest), "{}");
  const auto folder = repository.publish(kCommit, "main", {pooling});
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  EXPECT_EQ(content(fs::path(*folder) / pooling.name), "{}");
  EXPECT_EQ(fs::read_symlink(fs::path(*folder) / pooling.name), "../../../blobs/" + pooling.digest);
}

TEST(HubCache, SnapshotInPartIsCompleted) {
  const TempDir dir;
  const CachedRepository repository(dir.path(), kName);
  ASSERT_TRUE(repository.make_folders().ok());
  const RemoteFile config{"config.json", 2, std::string(40, 'a')};
  const RemoteFile weights{"model.safetensors", 1, std::string(64, 'b')};
  write(repository.blob(config.digest), "{}");
  write(repository.blob(weights.digest), "x");
  ASSERT_TRUE(repository.publish(kCommit, "main", {config}).ok());
  const auto folder = repository.publish(kCommit, "main", {config, weights});
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(content(fs::path(*folder) / "model.safetensors"), "x");
}

TEST(HubCache, HostileReferenceLeadsNowhere) {
  const TempDir dir;
  const CachedRepository repository(dir.path(), kName);
  fs::create_directories(dir.path() + "/models--Own--a.b/snapshots");
  write(repository.path() + "/refs/main", "../../..");
  EXPECT_FALSE(repository.find_snapshot("main"));
}

TEST(CompleteFolder, ModelNeedsWeightsTokenizerAndProcessor) {
  const TempDir dir;
  const auto complete = [&](Kind kind = Kind::kModel) {
    return is_complete(dir.path(), kind, kName);
  };
  dir.write("config.json", R"({"vision_config": {}})");
  dir.write("tokenizer.json", "{}");
  dir.write("preprocessor_config.json", "{}");
  EXPECT_FALSE(complete());
  dir.write("model.safetensors.index.json", R"({"weight_map": {"a": "1.s", "b": "2.s"}})");
  dir.write("1.s", "");
  EXPECT_FALSE(complete());
  fs::create_symlink("nowhere", dir.file("2.s"));
  EXPECT_FALSE(complete());
  fs::remove(dir.file("2.s"));
  dir.write("2.s", "");
  EXPECT_TRUE(complete());
  EXPECT_TRUE(complete(Kind::kAny));
  EXPECT_FALSE(complete(Kind::kAdapter));
  fs::remove(dir.file("preprocessor_config.json"));
  EXPECT_FALSE(complete());
  EXPECT_TRUE(has_tensors(dir.path(), Kind::kModel, kName));
  dir.write("config.json", "{}");
  EXPECT_TRUE(complete());
  fs::remove(dir.file("tokenizer.json"));
  EXPECT_FALSE(complete());
}

TEST(CompleteFolder, AdapterAndGgufFile) {
  const TempDir adapter;
  adapter.write("adapter_config.json", "{}");
  EXPECT_FALSE(is_complete(adapter.path(), Kind::kAdapter, kName));
  adapter.write("adapter_model.safetensors", "");
  EXPECT_TRUE(is_complete(adapter.path(), Kind::kAdapter, kName));
  EXPECT_TRUE(is_complete(adapter.path(), Kind::kAny, kName));
  EXPECT_FALSE(is_complete(adapter.path(), Kind::kModel, kName));
  const TempDir mlx;
  mlx.write("adapter_config.json", "{}");
  mlx.write("adapters.safetensors", "");
  EXPECT_TRUE(is_complete(mlx.path(), Kind::kAdapter, kName));
  const TempDir gguf;
  gguf.write("a.gguf", "");
  EXPECT_TRUE(is_complete(gguf.path(), Kind::kModel, kName));
  EXPECT_EQ(path_in(gguf.path(), kName), gguf.file("a.gguf"));
  HubName named = kName;
  named.file = "b.gguf";
  EXPECT_FALSE(is_complete(gguf.path(), Kind::kModel, named));
}

TEST(ModelScope, FolderIsFoundWithDotsAsItWritesThem) {
  const TempDir dir;
  const fs::path folder = fs::path(dir.path()) / "models/Own/a___b";
  write(folder / "adapter_config.json", "{}");
  const std::vector<std::string> roots = {dir.path() + "/models", dir.path()};
  EXPECT_FALSE(find_modelscope(roots, Kind::kAdapter, kName));
  write(folder / "adapter_model.safetensors", "");
  EXPECT_EQ(find_modelscope(roots, Kind::kAdapter, kName), folder.string());
  HubName revised = kName;
  revised.revision = "v1";
  EXPECT_FALSE(find_modelscope(roots, Kind::kAdapter, revised));
}

}  // namespace
}  // namespace valora::hub
