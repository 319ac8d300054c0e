// Adapters in the blocks of a pool on a GPU give the same results as adapters that own tensors
// there. Skipped without a GPU.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ops/device/device_copy.h"
#include "ops/device/dispatch.h"
#include "ops/device/pool_memory.h"
#include "ops/linear/linear.h"
#include "ops/merge/merge.h"
#include "ops/testing/platforms.h"

namespace valora::ops {
namespace {

struct DeviceSize {
  int64_t in, out;
};
constexpr DeviceSize kDeviceSizes[] = {{33, 21}, {64, 40}, {128, 700}, {704, 136}, {128, 700}};

std::span<const uint8_t> values_of(const at::Tensor& t) {
  return {static_cast<const uint8_t*>(t.const_data_ptr()), t.nbytes()};
}

struct DeviceBoth {
  AdapterWeights owning, paged;
};

class DeviceAdapters : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (!testing_support::has_gpu()) GTEST_SKIP() << "no GPU";
    pool_ = PoolMemory(400, block_bytes(), gpu());
    pool_.as(dtype()).fill_(NAN);
    for (int32_t i = 0; i < pool_.blocks(); ++i) free_.push_back(i);
    std::shuffle(free_.begin(), free_.end(), rng_);
  }
  static at::Device gpu() { return {at::kCUDA, 0}; }
  at::ScalarType dtype() const { return GetParam(); }
  size_t block_bytes() const {
    return pool_block_bytes(0, largest_panel_bytes(704, 64, dtype(), WeightForm::kPlain));
  }
  at::Tensor random(at::IntArrayRef sizes) { return at::randn(sizes, generator_, at::kFloat); }
  at::Tensor on_gpu(at::IntArrayRef sizes) { return random(sizes).to(dtype()).to(gpu()); }

  // A random rank on most modules. Panels are copied by way of pinned memory.
  DeviceBoth make() {
    DeviceBoth both{AdapterWeights(std::size(kDeviceSizes)), {}};
    std::vector<LoraShape> shapes;
    std::vector<std::pair<at::Tensor, at::Tensor>> factors;
    for (int m = 0; m < static_cast<int>(std::size(kDeviceSizes)); ++m) {
      if (rng_() % 5 == 0) continue;
      const auto rank = static_cast<int64_t>(rng_() % 64) + 1;
      factors.emplace_back(random({rank, kDeviceSizes[m].in}) * 0.2,
                           random({kDeviceSizes[m].out, rank}) * 0.2);
      const auto& [a, b] = factors.back();
      shapes.push_back({m, rank, kDeviceSizes[m].in, kDeviceSizes[m].out, 0.5f});
      both.owning.set(m, {Weight(a, dtype(), gpu()), Weight(b, dtype(), gpu())}, 0.5f);
    }
    auto layout = PanelLayout::make(shapes, dtype(), block_bytes(), WeightForm::kPlain);
    taken_.clear();
    const at::Tensor staged = pinned_bytes(layout->blocks() * static_cast<int64_t>(block_bytes()));
    std::vector<std::byte*> host, device;
    DeviceCopier copier(gpu());
    for (int32_t i = 0; i < layout->blocks(); ++i)
      host.push_back(static_cast<std::byte*>(staged.data_ptr()) + i * block_bytes());
    for (size_t i = 0; i < factors.size(); ++i) {
      const auto& [a, b] = factors[i];
      layout->write(i, {DType::kF32, a.sizes().vec(), values_of(a)},
                    {DType::kF32, b.sizes().vec(), values_of(b)}, host);
    }
    for (int32_t i = 0; i < layout->blocks(); ++i) {
      const int32_t block = free_.back();
      free_.pop_back();
      taken_.push_back(block);
      const auto bytes = static_cast<int64_t>(block_bytes());
      copier.copy(pool_.bytes_of(block, block_bytes()), staged.narrow(0, i * bytes, bytes));
      device.push_back(pool_.block(block));
    }
    copier.wait();
    both.paged = AdapterWeights(std::size(kDeviceSizes), std::move(*layout));
    both.paged.place(device);
    return both;
  }

  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(5);
  std::mt19937 rng_{7};
  PoolMemory pool_;
  std::vector<int32_t> free_, taken_;
};
INSTANTIATE_TEST_SUITE_P(Dtypes, DeviceAdapters,
                         ::testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& info) { return std::string(at::toString(info.param)); });

TEST_P(DeviceAdapters, ProjectionsEqualOwningForm) {
  std::vector<DeviceBoth> adapters;
  for (int i = 0; i < 6; ++i) adapters.push_back(make());
  for (const int64_t tokens : {1, 6, 18, 200}) {
    LoraBatch owning, paged;
    for (int64_t a = 0; a < 6; ++a) {
      owning.add(tokens * a / 6, tokens * (a + 1) / 6, adapters[a].owning, 0.7f);
      paged.add(tokens * a / 6, tokens * (a + 1) / 6, adapters[a].paged, 0.7f);
    }
    for (int m = 0; m < static_cast<int>(std::size(kDeviceSizes)); ++m) {
      const Weight base(random({kDeviceSizes[m].out, kDeviceSizes[m].in}) * 0.1, dtype(), gpu());
      const at::Tensor x = on_gpu({tokens, kDeviceSizes[m].in});
      const at::Tensor y = linear(x, {&base, m}, paged);
      EXPECT_TRUE(at::equal(y, linear(x, {&base, m}, owning))) << tokens << " tokens, module " << m;
      EXPECT_TRUE(y.isfinite().all().item<bool>());
      if (tokens >= 6 && paged.touches(m)) {
        EXPECT_FALSE(at::equal(y, linear(x, base)));
      }
    }
  }
}

TEST_P(DeviceAdapters, PartialSumsIncludeAdapterProducts) {
  const DeviceBoth both = make();
  const double tolerance = dtype() == at::kFloat ? 1e-5 : 2e-2;
  for (const int64_t tokens : {1, 40}) {
    LoraBatch lora;
    lora.add(0, tokens, both.paged, 0.7f);
    for (int m = 0; m < static_cast<int>(std::size(kDeviceSizes)); ++m) {
      const Weight base(random({kDeviceSizes[m].out, kDeviceSizes[m].in}) * 0.1, dtype(), gpu());
      const at::Tensor x = on_gpu({tokens, kDeviceSizes[m].in});
      const at::Tensor sums = linear_float(x, {&base, m}, lora),
                       rounded = linear(x, {&base, m}, lora).to(at::kFloat);
      EXPECT_EQ(sums.scalar_type(), at::kFloat);
      const double error = (sums - rounded).abs().max().item<double>();
      EXPECT_LE(error, tolerance * rounded.abs().max().item<double>()) << "module " << m;
      if (both.paged.touches(m)) {
        EXPECT_GT((sums - linear_float(x, base)).abs().max().item<double>(), 2 * error);
      }
    }
  }
}

TEST_P(DeviceAdapters, MergesEqualOwningForm) {
  for (int i = 0; i < 4; ++i) {
    const DeviceBoth both = make();
    for (int m = 0; m < static_cast<int>(std::size(kDeviceSizes)); ++m) {
      if (!both.paged.touches(m)) continue;
      const Weight base(random({kDeviceSizes[m].out, kDeviceSizes[m].in}), dtype(), gpu());
      const Weight left = base.with_data(at::empty_like(base.data())),
                   right = base.with_data(at::empty_like(base.data()));
      merge(std::vector<Merge>{{&base, &left, &both.paged, m, 0.5f}});
      merge(std::vector<Merge>{{&base, &right, &both.owning, m, 0.5f}});
      EXPECT_TRUE(at::equal(left.data(), right.data())) << "module " << m;
      EXPECT_FALSE(at::equal(left.data(), base.data()));
    }
  }
}

TEST_P(DeviceAdapters, MayMoveToOtherBlocks) {
  DeviceBoth both = make();
  int module = 0;
  while (!both.paged.touches(module)) ++module;
  const Weight base(random({kDeviceSizes[module].out, kDeviceSizes[module].in}), dtype(), gpu());
  const at::Tensor x = on_gpu({3, kDeviceSizes[module].in});
  const auto adapted = [&](const AdapterWeights& adapter) {
    LoraBatch lora;
    lora.add(0, 3, adapter, 1);
    return linear(x, {&base, module}, lora);
  };
  const at::Tensor expected = adapted(both.paged);
  std::vector<std::byte*> blocks;
  for (const int32_t block : taken_) {
    blocks.push_back(pool_.block(free_.back()));
    pool_.bytes_of(free_.back(), block_bytes()).copy_(pool_.bytes_of(block, block_bytes()));
    pool_.bytes_of(block, block_bytes()).fill_(0xff);
    free_.pop_back();
  }
  both.paged.unplace();
  EXPECT_THROW(adapted(both.paged), c10::Error);
  both.paged.place(blocks);
  EXPECT_TRUE(at::equal(adapted(both.paged), expected));
}

}  // namespace
}  // namespace valora::ops
