#include "adapters/folder/read_at_rest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "adapters/tensors/base_weights.h"
#include "adapters/testing/adapter_folder.h"
#include "adapters/testing/fake_base.h"

namespace valora::adapters {
namespace {

using testing::AdapterFolder;
using testing::FakeBase;
using testing::filled;
using ::testing::HasSubstr;
using testing::kHidden;
using testing::small_table;

constexpr const char* kTensors = "adapter_model.safetensors";

// Other values in a file of the same size.
struct Version : AdapterFolder {
  explicit Version(float first) {
    for (auto& [name, tensor] : tensors) tensor = filled(tensor.shape, first);
  }
};

// Writes within the file, without replacing or shortening it, as programs that update a file do.
void overwrite(const std::string& path, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(CompareAgain, FindsOtherValues) {
  AdapterFolder folder;
  folder.write();
  const auto input = InputFile::open(folder.dir.file(kTensors));
  const auto read = SafeTensors::read(*input, [](const std::string&) { return true; });
  EXPECT_TRUE(compare_again(*input, **read).ok());
  overwrite(folder.dir.file(kTensors), testing::safetensors_text(Version(7).tensors));
  const Status changed = compare_again(*input, **read);
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().code, ErrorCode::kConflict);
  EXPECT_THAT(changed.error().message, HasSubstr("was changed while it was read"));
}

// Calls a function while the adapter is read: when its output layer is compared with the base's.
class WatchedBase final : public BaseWeights {
 public:
  explicit WatchedBase(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {
    base_.add("lm_head.weight", {10, kHidden}, std::vector<float>(10 * kHidden));
  }
  std::optional<std::vector<int64_t>> shape_of(const std::string& name) const override {
    return base_.shape_of(name);
  }
  Result<bool> equal(const std::string& name, size_t first,
                     const TensorView& piece) const override {
    meanwhile_();
    return base_.equal(name, first, piece);
  }
  Result<std::vector<float>> values_of(const std::string& name) const override {
    return base_.values_of(name);
  }
  Result<std::vector<float>> row_norms(const std::string& name, const TensorView& a,
                                       const TensorView& b, float scale) const override {
    return base_.row_norms(name, a, b, scale);
  }
  Result<std::vector<float>> column_norms(const std::string& name, const TensorView& a,
                                          const TensorView& b, float scale) const override {
    return base_.column_norms(name, a, b, scale);
  }
  bool tied() const override { return false; }

 private:
  FakeBase base_;
  std::function<void()> meanwhile_;
};

TEST(ReadAdapter, FilesThatChangeMeanwhileAreAConflict) {
  AdapterFolder folder;
  folder.tensors[AdapterFolder::key("lm_head", "weight")] =
      testing::f32_tensor({10, kHidden}, std::vector<float>(10 * kHidden));
  folder.sidecar = {{"task", "x"}};
  folder.write();
  const auto read = [&](std::function<void()> meanwhile) {
    const auto spec =
        read_adapter(folder.dir.path(), small_table(), {}, WatchedBase(std::move(meanwhile)));
    return spec.ok() ? "read" : spec.error().message;
  };
  EXPECT_EQ(read([] {}), "read");
  Version other(7);
  other.tensors[AdapterFolder::key("lm_head", "weight")] =
      folder.tensors[AdapterFolder::key("lm_head", "weight")];
  const std::string tensors = testing::safetensors_text(other.tensors);
  EXPECT_THAT(read([&] { overwrite(folder.dir.file(kTensors), tensors); }),
              HasSubstr("adapter_model.safetensors was changed while it was read"));
  EXPECT_THAT(read([&] { folder.dir.write("adapter_config.json", folder.config.dump()); }),
              HasSubstr("adapter_config.json was changed while it was read"));
  EXPECT_THAT(read([&] { std::filesystem::remove(folder.dir.file("valora.json")); }),
              HasSubstr("valora.json was changed while it was read"));
}

TEST(ReadAtRest, ReadsAgainAfterAConflict) {
  AdapterFolder folder;
  folder.write();
  int readings = 0;
  const auto read = [&]() -> Result<AdapterSpec> {
    if (++readings < 3) return Error{ErrorCode::kConflict, "changed", {}};
    return folder.read();
  };
  EXPECT_TRUE(read_at_rest(folder.dir.path(), read).ok());
  EXPECT_EQ(readings, 3);
  readings = -10;
  EXPECT_EQ(read_at_rest(folder.dir.path(), read).error().code, ErrorCode::kConflict);
  EXPECT_EQ(readings, -7);
  const FolderPath nowhere(std::string("/no/such/folder"));
  const auto missing =
      read_at_rest(nowhere, [&] { return read_adapter(nowhere, small_table(), {}); });
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

// A writer alternates two versions in place, in small pieces with pauses between them.
TEST(ReadAtRest, NeverMixesTwoVersions) {
  AdapterFolder folder;
  folder.write();
  std::vector<std::string> versions;
  std::set<Digest> whole;
  for (const float first : {1.f, 7.f}) {
    const Version version(first);
    whole.insert(version.read()->digest);
    versions.push_back(testing::safetensors_text(version.tensors));
  }
  overwrite(folder.dir.file(kTensors), versions[0]);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    std::mt19937 random(3);
    for (int i = 1; !stop; ++i) {
      const std::string& bytes = versions[i % 2];
      for (size_t at = 0; at < bytes.size(); at += 64) {
        std::fstream file(folder.dir.file(kTensors),
                          std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(at))
            .write(&bytes[at], std::min<std::streamsize>(64, bytes.size() - at));
        file.close();
        if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
    }
  });
  int read = 0;
  std::set<Digest> seen;
  for (int i = 0; i < 20; ++i) {
    const auto spec = read_at_rest(
        folder.dir.path(), [&] { return read_adapter(folder.dir.path(), small_table(), {}); });
    if (!spec.ok()) {
      EXPECT_EQ(spec.error().code, ErrorCode::kConflict) << spec.error().message;
      continue;
    }
    ++read;
    seen.insert(spec->digest);
    EXPECT_TRUE(whole.contains(spec->digest));
  }
  stop = true;
  writer.join();
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace valora::adapters
