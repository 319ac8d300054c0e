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
  at::Tensor zeros;   // uint8 [out, groups()]; symmetric: 1 << (bits - 1); with minimums: undefined
  int64_t group = 0;  // inputs per group; the last may be shorter; in: one group per output
  at::Tensor minimums = {};  // float [out, groups()], or undefined

  int64_t out() const { return values.size(0); }
  int64_t in() const { return values.size(1); }
  int64_t groups() const { return (in() + group - 1) / group; }
  // True if all zeros are 1 << (bits - 1). `zeros` must be defined.
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

}  // namespace valora::ops
