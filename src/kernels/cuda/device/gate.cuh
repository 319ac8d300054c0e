// The activations of gated products, computed in fp32.
#pragma once

#include "kernels/types/forms.h"

namespace valora::kernels::cuda {

__device__ inline float sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }

__device__ inline float silu(float x) { return x * sigmoid(x); }

__device__ inline float gelu_tanh(float x) {
  // (1 + tanh(v)) / 2 = sigmoid(2 · v), which keeps the digits of small results.
  constexpr float kTwiceRoot = 1.5957691216057308f;  // 2 · √(2/π)
  return x * sigmoid(kTwiceRoot * (x + 0.044715f * x * x * x));
}

__device__ inline float activated(Gate activation, float x) {
  return activation == Gate::kSilu ? silu(x) : gelu_tanh(x);
}

}  // namespace valora::kernels::cuda
