// A linear's values as integers: the result of reading a quantised checkpoint, or of quantise().
#pragma once

#include <ATen/ATen.h>

#include <array>

namespace valora::ops {

// A weight w, [out, in], with w[o][i] = (values[o][i] - zeros[o][g]) * scales[o][g] and g = i /
// group; or, with minimums, w[o][i] = values[o][i] * scales[o][g] + minimums[o][g].
struct QuantisedTensor {
  at::Tensor values;  // uint8 [out, in], each below 1 << bits; int8 is stored as value + 128
  int bits = 8;       // 4 or 8
  at::Tensor scales;  // float [out, groups()]
  at::Tensor zeros;   // uint8 [out, groups()]; symmetric: middle_of(bits); with minimums: undefined
  int64_t group = 0;  // inputs per group; the last may be shorter; in: one group per output
  at::Tensor minimums = {};  // float [out, groups()], or undefined

  int64_t out() const { return values.size(0); }
  int64_t in() const { return values.size(1); }
  int64_t groups() const { return (in() + group - 1) / group; }
  // True if all zeros are kernels::middle_of(bits). `zeros` must be defined.
  bool symmetric() const;
  // Throws c10::Error if a tensor is not contiguous on the CPU or has the wrong dtype or shape, if
  // a value or zero is 1 << bits or above, or if a scale or minimum is not finite.
  void check() const;
  // The same outputs in another order: output o of the result is output order[o]. order: [out()].
  QuantisedTensor in_rows(const at::Tensor& order) const;
  // Outputs [outs[0], outs[1]) and inputs [ins[0], ins[1]), with unchanged values. Groups divided
  // by the bounds become shorter.
  QuantisedTensor part(std::array<int64_t, 2> outs, std::array<int64_t, 2> ins) const;
  // float [out, in]
  at::Tensor decoded() const;
};

// How to quantise a linear's weights.
struct Quantisation {
  int bits = 8;         // 4 or 8
  int64_t group = 128;  // inputs per scale; at most all of them
};

// w: [out, in] of any float type, in host memory. Symmetric; see kernels/cpu/product/quantise.h.
// Works on a few rows at a time. Throws c10::Error if a value is not finite.
QuantisedTensor quantise(const at::Tensor& w, const Quantisation& to);

// Bytes of a packed integer weight [out, in] with bf16 scales, as quantise() makes them, or fp32
// scales, and with or without minimums.
size_t quantised_bytes(int64_t out, int64_t in, const Quantisation& to, bool float_scales = false,
                       bool minimums = false);

}  // namespace valora::ops
