// The linears and heads of the models (Qwen2.5) whose sizes the benchmarks use.
#pragma once

namespace valora::kernels::cuda {

struct ModelSizes {
  const char* name;
  int hidden, heads, kv_heads, dim, inter;
};
inline constexpr ModelSizes kModels[] = {{"0.5B", 896, 14, 2, 64, 4864},
                                         {"7B", 3584, 28, 4, 128, 18944}};

}  // namespace valora::kernels::cuda
