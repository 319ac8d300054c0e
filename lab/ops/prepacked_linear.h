// oneDNN's linear with weights prepacked into its own layout, as used by torch.compile.
#pragma once

#include <ATen/ATen.h>

namespace valora::bench {

// True if this libtorch has the operators and the processor supports them in this dtype.
bool has_prepacked_linear(at::ScalarType dtype);
// w: [out, in]. Packs it for products with `tokens` rows.
at::Tensor prepack_linear(const at::Tensor& w, int64_t tokens);
at::Tensor prepacked_linear(const at::Tensor& x, const at::Tensor& packed);

// oneDNN's product of 8-bit integers: weights with a scale per output, inputs with a scale in all,
// which is known beforehand.
class OnednnBytes {
 public:
  static bool supported();
  // w: [out, in] in fp32.
  OnednnBytes(const at::Tensor& w, int64_t tokens, double largest_input);
  // x: [tokens, in] in fp32 or bf16 → [tokens, out] in fp32: oneDNN writes bf16 by its reference
  // loop on AVX2.
  at::Tensor product(const at::Tensor& x) const;

 private:
  double input_scale_;
  at::Tensor packed_, scales_, zeros_;
};

}  // namespace valora::bench
