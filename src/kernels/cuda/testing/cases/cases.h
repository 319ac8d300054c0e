// The groups of cases in cuda_kernels_test for one dtype, with fixed and random sizes. Each prints
// its results; → true if all cases passed.
#pragma once

#include "kernels/cuda/testing/report.h"
#include "kernels/cuda/types.h"

namespace valora::kernels::cuda {

bool test_elementwise(Dtype dtype, const Selection& selection);
bool test_delta(Dtype dtype, const Selection& selection);
bool test_rotate_store(Dtype dtype, const Selection& selection);
bool test_attention(Dtype dtype, const Selection& selection);
bool test_prompts(Dtype dtype, const Selection& selection);
bool test_lora(Dtype dtype, const Selection& selection);
bool test_integers(Dtype dtype, const Selection& selection);
bool test_merge(Dtype dtype, const Selection& selection);
bool test_sampling(Dtype dtype, const Selection& selection);
bool test_vocabulary(Dtype dtype, const Selection& selection);

}  // namespace valora::kernels::cuda
