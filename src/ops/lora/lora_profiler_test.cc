// Skipped without a GPU.
#include "ops/lora/lora_profiler.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "kernels/tiles/tune.h"
#include "ops/device/dispatch.h"
#include "ops/testing/platforms.h"

namespace valora::ops {
namespace {

TEST(DeviceLoraProfiler, RunsEveryKindWithEveryTile) {
  if (!testing_support::has_gpu()) GTEST_SKIP() << "no GPU";
  using kernels::ProductKind;
  const RealClock clock;
  const auto profiler = LoraProfiler::make(at::Device(at::kCUDA, 0), clock);
  ASSERT_TRUE(profiler);
  for (const ProductKind kind : {ProductKind::kShrink, ProductKind::kExpand,
                                 ProductKind::kLongShrink, ProductKind::kLongExpand})
    for (const int64_t m : {1, 3}) {
      const bool shrink = kernels::is_shrink(kind);
      // Higher ranks than one linear of a launch can have.
      const kernels::ProductShape shape{
          kind, false, kernels::CudaArch::kSm90, m, shrink ? 264 : 48, shrink ? 64 : 8};
      for (const kernels::Tile& tile : kernels::candidate_tiles(shape)) {
        const auto& cuda = std::get<kernels::CudaTile>(tile);
        EXPECT_GT(profiler->seconds(shape, cuda), 0);
        EXPECT_LT(profiler->seconds(shape, cuda), 1);
      }
    }
}

TEST(DeviceLoraProfiler, RunsMergesWithEveryTile) {
  if (!testing_support::has_gpu()) GTEST_SKIP() << "no GPU";
  const RealClock clock;
  const auto profiler = LoraProfiler::make(at::Device(at::kCUDA, 0), clock);
  ASSERT_TRUE(profiler);
  for (const int64_t weights : {int64_t{1} << 12, int64_t{3} << 18})
    for (const int64_t rank : {12, 70}) {
      const kernels::ProductShape shape{
          kernels::ProductKind::kMerge, false, kernels::CudaArch::kSm90, 1, weights, rank};
      const auto tiles = kernels::candidate_tiles(shape);
      EXPECT_EQ(tiles.size(), 3u);
      for (const kernels::Tile& tile : tiles)
        EXPECT_GT(profiler->seconds(shape, std::get<kernels::CudaTile>(tile)), 0);
    }
}

TEST(DeviceLoraProfiler, IsNullOnCpu) {
  const RealClock clock;
  EXPECT_FALSE(LoraProfiler::make(at::kCPU, clock));
}

}  // namespace
}  // namespace valora::ops
