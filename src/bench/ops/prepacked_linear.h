// oneDNN's linear over weights that were prepacked into its own layout, as torch.compile uses it.
#pragma once

#include <ATen/ATen.h>

namespace valora::bench {

// True if this libtorch has the operators and the processor supports them in this dtype.
bool has_prepacked_linear(at::ScalarType dtype);
// w: [out, in], packed for products with `tokens` rows.
at::Tensor prepack_linear(const at::Tensor& w, int64_t tokens);
at::Tensor prepacked_linear(const at::Tensor& x, const at::Tensor& packed);

}  // namespace valora::bench
