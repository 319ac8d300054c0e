// Adapters that must not escape the allowed folder.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "adapters/testing/adapter_folder.h"

namespace valora::adapters {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class AdapterRootTest : public ::testing::Test {
 protected:
  AdapterRootTest() {
    fs::create_directory(dir_.file("root"));
    place("root/cats", "inside");
    place("outside", "outside");
  }

  void place(const std::string& name, const std::string& task) {
    testing::AdapterFolder folder;
    folder.sidecar = {{"task", task}};
    folder.write();
    fs::copy(folder.dir.path(), dir_.file(name));
  }
  Result<AdapterSpec> read(const std::string& name) const {
    return read_adapter({dir_.file(name), dir_.file("root")}, testing::small_table(), {});
  }

  testing::TempDir dir_;
};

TEST_F(AdapterRootTest, HubCacheSnapshotLoads) {
  fs::create_directories(dir_.file("root/hub/snapshots/1"));
  fs::create_directories(dir_.file("root/hub/blobs"));
  for (const auto& entry : fs::directory_iterator(dir_.file("root/cats"))) {
    const fs::path name = entry.path().filename();
    fs::copy(entry.path(), dir_.file("root/hub/blobs") / name);
    fs::create_symlink(fs::path("../../blobs") / name, dir_.file("root/hub/snapshots/1") / name);
  }
  const auto inside = read("root/hub/snapshots/1");
  ASSERT_TRUE(inside.ok()) << inside.error().message;
  EXPECT_EQ(inside->task, "inside");
  EXPECT_EQ(inside->root, dir_.file("root"));
  const auto anywhere = read_adapter(dir_.file("root/hub/snapshots/1"), testing::small_table(), {});
  EXPECT_EQ(anywhere->digest, inside->digest);
}

TEST_F(AdapterRootTest, LinkOutOfRootIsRefused) {
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors", "valora.json"}) {
    place("root/dogs", "inside");
    const std::string file = dir_.file("root/dogs/") + name;
    fs::remove(file);
    fs::create_symlink(dir_.file("outside/") + name, file);
    ASSERT_FALSE(read("root/dogs").ok()) << name;
    EXPECT_THAT(read("root/dogs").error().message, HasSubstr("out of the allowed folder"));
    EXPECT_TRUE(read_adapter(dir_.file("root/dogs"), testing::small_table(), {}).ok());
    fs::remove_all(dir_.file("root/dogs"));
  }
  EXPECT_EQ(read("outside").error().code, ErrorCode::kNotFound);
}

TEST_F(AdapterRootTest, SwappingFolderForLinkDuringLoadIsSafe) {
  const std::string cats = dir_.file("root/cats"), link = dir_.file("root/link");
  fs::create_directory_symlink(dir_.file("outside"), link);
  std::atomic<bool> done = false;
  std::thread swapper([&] {
    while (!done) ::renameat2(AT_FDCWD, cats.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
  });
  int inside = 0, outside = 0;
  for (int i = 0; i < 4'000; ++i) {
    const auto spec = read("root/cats");
    inside += spec.ok() && spec->task == "inside" ? 1 : 0;
    outside += spec.ok() && spec->task == "outside" ? 1 : 0;
  }
  done = true;
  swapper.join();
  EXPECT_GT(inside, 0);
  EXPECT_EQ(outside, 0);
}

}  // namespace
}  // namespace valora::adapters
