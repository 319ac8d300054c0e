// The groups of cases of cuda_kernels_test. Each prints its results; → whether all passed.
#pragma once

namespace valora::kernels::cuda {

bool test_elementwise();
bool test_attention();
bool test_lora();
bool test_merge();

}  // namespace valora::kernels::cuda
