// Which kernels the plans choose on which GPU, and by which shapes low-rank products are cut.
#include <gtest/gtest.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/emulation/machine.h"
#include "kernels/cuda/lora.h"

namespace valora::kernels::cuda {
namespace {

AttentionKernels kernels_on(int capability, int dim) {
  emulation::choose_gpu(capability);
  const AttentionShape shape{28, 4, dim, Dtype::kBf16, true, multiprocessors(), shared_bytes()};
  const AttentionKernels kernels = attention_kernels(shape);
  EXPECT_EQ(decode_fits(shape), kernels == AttentionKernels::kTensorCores);
  emulation::machine() = {};
  return kernels;
}

TEST(AttentionPlans, HeadsOf128AreOnTensorCoresOfEveryGpu) {
  for (const int capability : {80, 86, 89, 90, 120})
    for (const int dim : {64, 80, 96, 112, 128})
      EXPECT_EQ(kernels_on(capability, dim), AttentionKernels::kTensorCores)
          << capability << " " << dim;
}

TEST(AttentionPlans, HeadsOf256NeedTheSharedMemoryOfServers) {
  for (const int capability : {80, 90})
    EXPECT_EQ(kernels_on(capability, 256), AttentionKernels::kTensorCores);
  for (const int capability : {86, 89, 120})
    EXPECT_EQ(kernels_on(capability, 256), AttentionKernels::kPlain);
}

// A table that remembers what it was asked for.
std::vector<ProductShape>& asked() {
  static std::vector<ProductShape> shapes;
  return shapes;
}
CudaTile answer(const ProductShape& shape) {
  asked().push_back(shape);
  return is_shrink(shape.kind) ? CudaTile{8, 4, 4, 2} : CudaTile{64, 2, 1, 1};
}

LoraTiles tiles_of(const std::vector<DeviceLoraSegment>& segments) {
  asked().clear();
  LoraCall call;
  call.in = 3584;
  call.slices[0].out = 3584, call.slices[1].out = 512, call.slice_count = 2;
  call.max_rank = 16;
  call.sizes = plan_lora(segments.data(), segments.size()).sizes;
  return choose_lora_tiles(call, CudaArch::kSm90, answer);
}

TEST(LoraPlans, AskForTilesByTheLaunchesShapes) {
  const LoraTiles tiles = tiles_of({{0, 1, 0, 1, nullptr}, {1, 21, 0, 1, nullptr}});
  EXPECT_EQ(tiles.shrink, (CudaTile{8, 4, 4, 2}));
  EXPECT_EQ(tiles.expand, (CudaTile{64, 2, 1, 1}));
  ASSERT_EQ(asked().size(), 2u);
  EXPECT_EQ(asked()[0], (ProductShape{ProductKind::kShrink, false, CudaArch::kSm90, 3, 32, 3584}))
      << "one token, and 20 in tiles of 16; the ranks of two linears";
  EXPECT_EQ(asked()[1], (ProductShape{ProductKind::kExpand, false, CudaArch::kSm90, 3, 4096, 16}));
}

TEST(LoraPlans, AskForLongTilesIfASegmentIsLong) {
  tiles_of({{0, 65, 0, 1, nullptr}});
  ASSERT_EQ(asked().size(), 2u);
  EXPECT_EQ(asked()[0],
            (ProductShape{ProductKind::kLongShrink, false, CudaArch::kSm90, 3, 32, 3584}));
  EXPECT_EQ(asked()[1].kind, ProductKind::kLongExpand);
}

}  // namespace
}  // namespace valora::kernels::cuda
