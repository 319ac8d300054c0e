// Random switches: base weights are restored bit-exactly, and merged weights equal a merge from the
// base.
#include "engine/adapters/mode_switcher.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "adapters/adapter_spec.h"
#include "engine/adapters/adapter_tensors.h"
#include "engine/adapters/build_adapter.h"
#include "engine/testing/tiny_checkpoint.h"
#include "models/registry.h"
#include "ops/device/backend.h"

namespace valora {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

struct Setting {
  MergePlace place;
  ops::Backend backend;
  at::ScalarType dtype;
  std::optional<ops::Quantisation> quantise;
};

class Switcher : public ::testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    ops::set_backend(GetParam().backend);
    testing::write_tiny_model(folder_);
    auto loaded = models::load_model(folder_.path(), GetParam().dtype, at::kCPU,
                                     models::ModelUse::kServing, {GetParam().quantise});
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    loaded_ = std::move(loaded).value();
    switcher_ =
        std::make_unique<ModeSwitcher>(*loaded_.model, *loaded_.weights, 0, GetParam().place,
                                       ops::launched_work(at::kCPU), clock_);
    base_ = values(nullptr);
    for (int i = 0; i < 3; ++i) adapters_.push_back(make_adapter(20 + i));
  }
  void TearDown() override { ops::set_backend(ops::Backend::kNative); }

  std::shared_ptr<const serving::LoadedAdapter> make_adapter(uint32_t seed) const {
    TempDir folder;
    testing::write_tiny_adapter(folder, seed);
    const adapters::ModuleTable& modules = loaded_.model->spec().modules;
    auto spec = adapters::read_adapter(folder.path(), modules, {256, size_t{1} << 20});
    EXPECT_TRUE(spec.ok()) << spec.error().message;
    return build_adapter(std::make_shared<const adapters::AdapterSpec>(std::move(*spec)), modules,
                         loaded_.dtype, at::kCPU)
        .value();
  }
  // Copies of the current weights, [out, in] each.
  std::vector<at::Tensor> values(const models::MergedWeights* merged) const {
    std::vector<at::Tensor> copies;
    for (const models::Linear* linear : loaded_.model->decoder_linears()) {
      const bool replaced = merged && merged->modules[linear->module()].defined();
      copies.push_back(
          (replaced ? merged->modules[linear->module()] : linear->weight()).unpacked().clone());
    }
    return copies;
  }
  static void expect_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b,
                           const std::string& what) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_TRUE(at::equal(a[i], b[i])) << what << ": linear " << i;
  }
  // Expects base + scale · B A, computed in double and rounded to the dtype.
  void expect_merged(const std::vector<at::Tensor>& got, const serving::LoadedAdapter& adapter) {
    const auto linears = loaded_.model->decoder_linears();
    bool changed = false;
    for (size_t i = 0; i < linears.size(); ++i) {
      const int module = linears[i]->module();
      at::Tensor expected = base_[i].to(at::kDouble);
      if (const ops::LoraWeight* lora = weights_of(adapter, 0).find(module)) {
        const at::Tensor a = lora->a.unpacked().to(at::kDouble),
                         b = lora->b.unpacked().to(at::kDouble);
        expected += weights_of(adapter, 0).module(module)->scale * at::mm(b, a);
        changed = true;
      }
      const double tolerance = loaded_.dtype == at::kFloat ? 1e-5 : 1.0 / 200;
      EXPECT_TRUE(at::allclose(got[i].to(at::kDouble), expected, tolerance, 1e-5))
          << "linear " << i;
    }
    EXPECT_TRUE(changed);
  }

  TempDir folder_;
  models::LoadedModel loaded_;
  SimulatedClock clock_;
  std::unique_ptr<ModeSwitcher> switcher_;
  std::vector<at::Tensor> base_;
  std::vector<std::shared_ptr<const serving::LoadedAdapter>> adapters_;
};

INSTANTIATE_TEST_SUITE_P(
    Settings, Switcher,
    ::testing::Values(Setting{MergePlace::kShadow, ops::Backend::kNative, at::kFloat},
                      Setting{MergePlace::kShadow, ops::Backend::kNative, at::kBFloat16},
                      Setting{MergePlace::kShadow, ops::Backend::kReference, at::kFloat},
                      Setting{MergePlace::kShadow, ops::Backend::kReference, at::kBFloat16},
                      Setting{MergePlace::kShadow, ops::Backend::kNative, at::kFloat,
                              ops::Quantisation{4, 32}},
                      Setting{MergePlace::kShadow, ops::Backend::kNative, at::kBFloat16,
                              ops::Quantisation{8, 128}},
                      Setting{MergePlace::kInPlace, ops::Backend::kNative, at::kFloat},
                      Setting{MergePlace::kInPlace, ops::Backend::kNative, at::kBFloat16},
                      Setting{MergePlace::kInPlace, ops::Backend::kReference, at::kFloat},
                      Setting{MergePlace::kInPlace, ops::Backend::kReference, at::kBFloat16}),
    [](const auto& info) {
      return std::string(info.param.place == MergePlace::kShadow ? "Shadow" : "InPlace") +
             (info.param.backend == ops::Backend::kNative ? "Native" : "Reference") +
             at::toString(info.param.dtype) + (info.param.quantise ? "Integers" : "");
    });

TEST_P(Switcher, MergesEveryLinearThatAnAdapterTouches) {
  for (const auto& adapter : adapters_) {
    ASSERT_TRUE(adapter->mergeable());
    expect_merged(values(switcher_->use(adapter)), *adapter);
    EXPECT_EQ(switcher_->in_use(), adapter);
  }
  EXPECT_EQ(switcher_->stats().merges, 3);
}

TEST_P(Switcher, ThousandSwitchesRestoreExactWeights) {
  std::vector<std::vector<at::Tensor>> merged;
  for (const auto& adapter : adapters_) merged.push_back(values(switcher_->use(adapter)));
  std::mt19937 rng(1);
  for (int i = 0; i < 1000; ++i) {
    const size_t choice = rng() % 4;
    const auto* weights = switcher_->use(choice < 3 ? adapters_[choice] : nullptr);
    if (i % 50 == 0)
      expect_equal(values(weights), choice < 3 ? merged[choice] : base_,
                   "after " + std::to_string(i));
  }
  EXPECT_EQ(switcher_->use(nullptr), nullptr);
  expect_equal(values(nullptr), base_, "the base");
  EXPECT_GT(switcher_->stats().switches, 600);
}

TEST_P(Switcher, ShadowLeavesBaseWeightsUnchanged) {
  if (GetParam().place != MergePlace::kShadow) GTEST_SKIP() << "in place they are written over";
  for (const auto& adapter : adapters_) {
    switcher_->use(adapter);
    expect_equal(values(nullptr), base_, "the base");
  }
}

TEST_P(Switcher, SwitchingBackToHeldAdapterIsFree) {
  const uint64_t expected = GetParam().place == MergePlace::kShadow ? 1 : 3;
  for (int i = 0; i < 3; ++i) {
    switcher_->use(adapters_[0]);
    switcher_->use(adapters_[0]);
    switcher_->use(nullptr);
  }
  EXPECT_EQ(switcher_->stats().merges, expected);
  EXPECT_EQ(switcher_->stats().switches, 6);
  // The same content as a different adapter object.
  switcher_->use(make_adapter(20));
  EXPECT_EQ(switcher_->stats().merges, GetParam().place == MergePlace::kShadow ? 1 : 4);
}

TEST_P(Switcher, KeepsTheMergedAdapterAlive) {
  std::weak_ptr<const serving::LoadedAdapter> first = adapters_[0];
  switcher_->use(adapters_[0]);
  adapters_[0].reset();
  EXPECT_FALSE(first.expired());
  switcher_->use(adapters_[1]);
  EXPECT_TRUE(first.expired());
}

// A device that takes a second for work that the host launches immediately.
class SlowMerges final : public ops::LaunchedWork {
 public:
  explicit SlowMerges(SimulatedClock& clock) : clock_(clock) {}
  void end_part() override {}
  void wait() override { clock_.advance(std::chrono::seconds(1)); }

 private:
  SimulatedClock& clock_;
};

TEST_P(Switcher, MergeTimeIncludesDeviceTime) {
  SimulatedClock clock;
  ModeSwitcher switcher(*loaded_.model, *loaded_.weights, 0, GetParam().place,
                        std::make_unique<SlowMerges>(clock), clock);
  switcher.use(adapters_[0]);
  EXPECT_EQ(switcher.stats().merge_seconds, 1);
  switcher.use(nullptr);
  EXPECT_EQ(switcher.stats().merge_seconds, GetParam().place == MergePlace::kShadow ? 1 : 2);
}

TEST_P(Switcher, AShadowHasRoomForEveryLinear) {
  int64_t bytes = 0;
  for (const models::Linear* linear : loaded_.model->decoder_linears())
    bytes += linear->weight().elements() *
             static_cast<int64_t>(c10::elementSize(linear->weight().dtype()));
  EXPECT_GE(ModeSwitcher::shadow_bytes(*loaded_.model), bytes);
  EXPECT_LT(ModeSwitcher::shadow_bytes(*loaded_.model), bytes + 64 * 14 + 1);
}

TEST_P(Switcher, RestoresFromDeletedCheckpoint) {
  const std::string file = folder_.file("model.safetensors");
  fs::rename(file, file + ".old");
  folder_.write("model.safetensors", "another");
  switcher_->use(adapters_[0]);
  fs::remove(file + ".old");
  switcher_->use(nullptr);
  expect_equal(values(nullptr), base_, "the base");
}

TEST_P(Switcher, RefusesToRestoreFromChangedCheckpoint) {
  const std::string file = folder_.file("model.safetensors");
  switcher_->use(adapters_[0]);
  for (const bool truncated : {false, true}) {
    if (truncated)
      fs::resize_file(file, 100);
    else
      folder_.write("model.safetensors", std::string(fs::file_size(file), 'x'));
    if (GetParam().place == MergePlace::kInPlace) {
      EXPECT_THROW(switcher_->use(nullptr), WeightsLostError);
      EXPECT_THROW(switcher_->use(adapters_[1]), WeightsLostError) << "nor anything merged on top";
    } else {
      expect_equal(values(switcher_->use(nullptr)), base_, "the base");
      switcher_->use(adapters_[0]);
    }
  }
}

}  // namespace
}  // namespace valora
