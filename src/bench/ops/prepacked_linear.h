// oneDNN's linear over weights that it brought into its own form before: what libtorch's compiler
// calls.
#pragma once

#include <ATen/ATen.h>

namespace valora::bench {

// Whether this libtorch has the operators.
bool has_prepacked_linear();
// w: [out, in], to be multiplied with `tokens` rows at a time.
at::Tensor prepack_linear(const at::Tensor& w, int64_t tokens);
at::Tensor prepacked_linear(const at::Tensor& x, const at::Tensor& packed);

}  // namespace valora::bench
