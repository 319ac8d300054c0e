// Adapters read by their headers only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "adapters/testing/adapter_folder.h"

namespace valora::adapters {
namespace {

using testing::AdapterFolder;
using ::testing::HasSubstr;
using testing::kHidden;
using testing::kQ0;

const std::string kA0 = AdapterFolder::key(kQ0, "lora_A.weight");

// Results of both readers on the same files.
struct Twice {
  explicit Twice(const AdapterFolder& folder) {
    folder.write();
    whole = read_adapter(folder.dir.path(), testing::small_table(), {}).value();
    headers = read_adapter_headers(folder.dir.path(), testing::small_table(), {}).value();
  }
  AdapterSpec whole, headers;
};

TEST(AdapterHeaders, ReportEverythingExceptValues) {
  AdapterFolder folder;
  folder.add_head("score", 2);
  folder.sidecar = {{"task", "sorting"}, {"question", "which?"}};
  const Twice read(folder);
  EXPECT_EQ(read.headers.bytes, read.whole.bytes);
  EXPECT_EQ(read.headers.max_rank, 2);
  EXPECT_EQ(read.headers.task, "sorting");
  EXPECT_EQ(read.headers.headers_digest, read.whole.headers_digest);
  EXPECT_EQ(read.headers.digest, read.headers.headers_digest);
  EXPECT_NE(read.headers.digest, read.whole.digest);
  ASSERT_EQ(read.headers.targets.size(), read.whole.targets.size());
  for (size_t i = 0; i < read.headers.targets.size(); ++i) {
    const LoraTarget &target = read.headers.targets[i], &whole = read.whole.targets[i];
    EXPECT_EQ(target.module, whole.module);
    EXPECT_EQ(target.scale, whole.scale);
    EXPECT_EQ(target.a.shape, whole.a.shape);
    EXPECT_EQ(target.b.shape, whole.b.shape);
    EXPECT_TRUE(target.a.bytes.empty() && target.b.bytes.empty());
  }
  ASSERT_EQ(read.headers.heads.size(), 1u);
  EXPECT_TRUE(
      std::ranges::equal(read.headers.heads[0].weight.bytes, read.whole.heads[0].weight.bytes));
}

TEST(AdapterHeaders, DigestFollowsFileAndSettings) {
  AdapterFolder folder;
  const Digest first = folder.read_headers()->digest;
  EXPECT_EQ(read_adapter_headers(folder.dir.path(), testing::small_table(), {})->digest, first);
  folder.config["lora_alpha"] = 5;
  folder.dir.write("adapter_config.json", folder.config.dump());
  const Digest scaled = read_adapter_headers(folder.dir.path(), testing::small_table(), {})->digest;
  EXPECT_NE(scaled, first);
  // The same content in a new file.
  const std::string file = folder.dir.file("adapter_model.safetensors");
  std::filesystem::copy_file(file, folder.dir.file("copy"));
  std::filesystem::rename(folder.dir.file("copy"), file);
  EXPECT_NE(read_adapter_headers(folder.dir.path(), testing::small_table(), {})->digest, scaled);
}

TEST(AdapterHeaders, OnlyValueErrorsGoUndetected) {
  AdapterFolder folder;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  folder.tensors[kA0] = testing::f32_tensor({2, kHidden}, std::vector<float>(2 * kHidden, nan));
  EXPECT_THAT(folder.refusal(), HasSubstr("not finite"));
  EXPECT_TRUE(folder.read_headers().ok());
  folder.tensors[kA0].dtype = "I32";
  EXPECT_THAT(folder.read_headers().error().message, HasSubstr("dtype I32"));
  folder.tensors[kA0] = testing::filled({2, kHidden + 1}, 1);
  EXPECT_THAT(folder.read_headers().error().message, HasSubstr("has shape"));
  folder.tensors.erase(kA0);
  EXPECT_THAT(folder.read_headers().error().message, HasSubstr("has no lora_A weight"));
  folder.add_lora(kQ0, 2, kHidden, kHidden);
  folder.add_head("score", 1);
  folder.tensors[AdapterFolder::key("score", "weight")] =
      testing::f32_tensor({1, kHidden}, std::vector<float>(kHidden, nan));
  EXPECT_THAT(folder.read_headers().error().message, HasSubstr("not finite"));
}

}  // namespace
}  // namespace valora::adapters
