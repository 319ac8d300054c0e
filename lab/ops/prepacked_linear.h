// oneDNN's linear with weights prepacked into its own layout, as used by torch.compile.
#pragma once

#include <ATen/ATen.h>

namespace valora::bench {

// True if this libtorch has the operators and the processor supports them in this dtype.
bool has_prepacked_linear(at::ScalarType dtype);
// w: [out, in]. Packs it for products with `tokens` rows.
at::Tensor prepack_linear(const at::Tensor& w, int64_t tokens);
at::Tensor prepacked_linear(const at::Tensor& x, const at::Tensor& packed);

}  // namespace valora::bench
