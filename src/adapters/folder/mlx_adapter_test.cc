#include "adapters/folder/mlx_adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/testing/adapter_folder.h"

namespace valora::adapters {
namespace {

using ::testing::HasSubstr;
using namespace adapters::testing;

class MlxAdapterTest : public ::testing::Test {
 protected:
  MlxAdapterTest() {
    tensors_[std::string(kQ0) + ".lora_a"] = f32_tensor({kHidden, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
    tensors_[std::string(kQ0) + ".lora_b"] = filled({2, kHidden}, 1);
  }
  Result<AdapterSpec> read() {
    dir_.write("adapter_config.json", config_.dump());
    dir_.write("adapters.safetensors", safetensors_text(tensors_, 0));
    return read_adapter(dir_.path(), small_table(), {});
  }
  std::string refusal() {
    const auto spec = read();
    return spec.ok() ? "accepted" : spec.error().message;
  }

  TempDir dir_;
  Json config_ = {{"fine_tune_type", "lora"},
                  {"num_layers", 16},
                  {"lora_parameters", {{"rank", 2}, {"scale", 20.0}, {"dropout", 0.0}}}};
  std::map<std::string, RawTensor> tensors_;
};

TEST_F(MlxAdapterTest, FactorsAreTransposedAndTheScaleIsNotDivided) {
  const auto spec = read();
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  ASSERT_EQ(spec->targets.size(), 1u);
  const LoraTarget& target = spec->targets[0];
  EXPECT_EQ(target.a.shape, (std::vector<int64_t>{2, kHidden}));
  EXPECT_EQ(target.b.shape, (std::vector<int64_t>{kHidden, 2}));
  EXPECT_FLOAT_EQ(target.scale, 20);
  const RawTensor expected = f32_tensor({2, kHidden}, {0, 2, 4, 6, 1, 3, 5, 7});
  EXPECT_EQ(std::string(target.a.bytes.begin(), target.a.bytes.end()), expected.bytes);
  EXPECT_TRUE(spec->warnings.empty());
  const auto headers = read_adapter_headers(dir_.path(), small_table(), {});
  ASSERT_TRUE(headers.ok());
  EXPECT_EQ(headers->headers_digest, spec->headers_digest);
}

TEST_F(MlxAdapterTest, RefusalNamesTheKeyOrTensor) {
  config_["fine_tune_type"] = "full";
  EXPECT_THAT(refusal(), HasSubstr("fine_tune_type \"full\" is not supported"));
  config_["fine_tune_type"] = "lora";
  tensors_["model.layers.0.m"] = filled({4}, 1);
  EXPECT_THAT(refusal(), HasSubstr("tensor \"model.layers.0.m\" is none of an adapter of MLX"));
  tensors_.erase("model.layers.0.m");
  config_["lora_parameters"].erase("scale");
  EXPECT_THAT(refusal(), HasSubstr("\"scale\""));
  config_.erase("lora_parameters");
  EXPECT_THAT(refusal(), HasSubstr("an adapter of MLX without \"lora_parameters\""));
}

}  // namespace
}  // namespace valora::adapters
