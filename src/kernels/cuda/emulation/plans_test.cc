// Which kernels the plans choose on which GPU.
#include <gtest/gtest.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/emulation/machine.h"

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

}  // namespace
}  // namespace valora::kernels::cuda
