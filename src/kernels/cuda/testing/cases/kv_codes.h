// Keys and values in 8 bits: a second implementation of kernels/types/forms.h.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/types/bf16.h"
#include "kernels/types/forms.h"

namespace valora::kernels::cuda {

struct KvCodes {
  std::vector<uint8_t> codes;
  kernels::bf16 scale;
  std::vector<float> numbers;  // the decoded codes, scale included
};
// Rounds a vector of finite values.
KvCodes codes_of(const float* x, int64_t count, KvFormat format);

}  // namespace valora::kernels::cuda
