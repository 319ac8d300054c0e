// The values of a linear in integers: what readers of quantised checkpoints make of its tensors,
// and what quantise() makes of floats.
#pragma once

#include <ATen/ATen.h>

#include <array>

namespace valora::ops {

// w: [out, in] with w[o][i] = (values[o][i] - zeros[o][g]) * scales[o][g], g = i / group, or, with
// minimums, values[o][i] * scales[o][g] + minimums[o][g].
struct QuantisedTensor {
  at::Tensor values;  // uint8 [out, in], each below 1 << bits; int8 weights are stored + 128
  int bits = 8;       // 4 or 8
  at::Tensor scales;  // float [out, groups()]
  at::Tensor zeros;   // uint8 [out, groups()]; symmetric: 1 << (bits - 1); with minimums: undefined
  int64_t group = 0;  // inputs per group; the last one may be shorter; in: one group per output
  at::Tensor minimums = {};  // float [out, groups()], or undefined

  int64_t out() const { return values.size(0); }
  int64_t in() const { return values.size(1); }
  int64_t groups() const { return (in() + group - 1) / group; }
  // Whether all zeros are 1 << (bits - 1). There must be zeros.
  bool symmetric() const;
  // Throws c10::Error if a tensor is not contiguous on the CPU, or has another dtype or shape, if a
  // value or a zero is 1 << bits or above, or if a scale or a minimum is not finite.
  void check() const;
  // The same outputs in another order: output o of the result is order[o], [out()].
  QuantisedTensor in_rows(const at::Tensor& order) const;
  // Outputs [outs[0], outs[1]) and inputs [ins[0], ins[1]) with the same values. Groups that the
  // part cuts become shorter.
  QuantisedTensor part(std::array<int64_t, 2> outs, std::array<int64_t, 2> ins) const;
  // float [out, in]
  at::Tensor decoded() const;
};

}  // namespace valora::ops
