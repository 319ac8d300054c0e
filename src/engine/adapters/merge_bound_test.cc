#include "engine/adapters/merge_bound.h"

#include <gtest/gtest.h>

#include "adapters/adapter_spec.h"
#include "engine/testing/tiny_checkpoint.h"
#include "models/registry.h"

namespace valora {
namespace {

using serving::MergeUse;
using testing::f32_tensor;
using testing::TempDir;

constexpr int kIn = testing::kHidden, kOut = testing::kHeads * testing::kHeadDim;
const std::string kQuery = "model.layers.0.self_attn.q_proj";

class MergeBoundTest : public ::testing::Test {
 protected:
  MergeBoundTest() { testing::write_tiny_model(folder_); }

  MergeBound bound_in(at::ScalarType dtype) {
    // CPUs serve no float16, but the bound does not depend on how W is stored.
    auto loaded = models::load_model(folder_.path(), at::kFloat, at::kCPU);
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    loaded_ = std::move(loaded).value();
    models::Model* const rank = loaded_.model.get();
    return MergeBound({&rank, 1}, dtype);
  }
  // An adapter of rank 1 on one linear, with D = b aᵀ.
  MergeUse use_of(const MergeBound& bound, const std::vector<float>& a,
                  const std::vector<float>& b) const {
    TempDir adapter;
    adapter.write(
        "adapter_config.json",
        Json{{"peft_type", "LORA"}, {"r", 1}, {"lora_alpha", 1}, {"target_modules", {kQuery}}}
            .dump());
    const std::string name = "base_model.model." + kQuery;
    adapter.write("adapter_model.safetensors",
                  testing::safetensors_text({{name + ".lora_A.weight", f32_tensor({1, kIn}, a)},
                                             {name + ".lora_B.weight", f32_tensor({kOut, 1}, b)}}));
    const adapters::ModuleTable& modules = loaded_.model->spec().modules;
    const auto spec = adapters::read_adapter(adapter.path(), modules, {256, size_t{1} << 20});
    EXPECT_TRUE(spec.ok()) << spec.error().message;
    return bound.use_of(*spec, modules);
  }
  static std::vector<float> one_of(int size, float value) {
    std::vector<float> values(size);
    values[2] = value;
    return values;
  }

  TempDir folder_;
  models::LoadedModel loaded_;
  const std::vector<float> a_ = std::vector<float>(kIn, 1), b_ = std::vector<float>(kOut, 1);
};

TEST_F(MergeBoundTest, SixteenBitsHaveNoRoomForOthers) {
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    const MergeBound bound = bound_in(dtype);
    EXPECT_EQ(use_of(bound, a_, std::vector<float>(kOut, 1e-4f)), MergeUse::kAlone);
    EXPECT_EQ(use_of(bound, a_, b_), MergeUse::kAlone);
    EXPECT_EQ(use_of(bound, a_, std::vector<float>(kOut, 17)), MergeUse::kNever);
  }
  bound_in(at::kFloat);
  EXPECT_EQ(use_of(MergeBound(), a_, b_), MergeUse::kAlone);
}

// Values of W have a standard deviation of 0.4, so a row or column of 16 has a norm of about 1.6.
TEST_F(MergeBoundTest, Fp32ComparesRowsAndColumns) {
  const MergeBound bound = bound_in(at::kFloat);
  EXPECT_EQ(use_of(bound, a_, b_), MergeUse::kAmongOthers);
  EXPECT_EQ(use_of(bound, a_, std::vector<float>(kOut, 15)), MergeUse::kAmongOthers);
  // Their root mean squares are 15 as well, but a row, or a column, has all of it.
  EXPECT_EQ(use_of(bound, a_, one_of(kOut, 60)), MergeUse::kAlone);
  EXPECT_EQ(use_of(bound, one_of(kIn, 60), b_), MergeUse::kAlone);
  EXPECT_EQ(use_of(bound, one_of(kIn, 100), one_of(kOut, 1)), MergeUse::kAmongOthers);
  EXPECT_EQ(use_of(bound, one_of(kIn, 255), one_of(kOut, 1)), MergeUse::kAlone);
  EXPECT_EQ(use_of(bound, a_, std::vector<float>(kOut, 17)), MergeUse::kNever);
}

}  // namespace
}  // namespace valora
