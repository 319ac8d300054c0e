// The weight of a linear in the form that its device multiplies fastest.
#pragma once

#include <ATen/ATen.h>

#include "kernels/types/weight_form.h"

namespace valora::ops {

using kernels::WeightForm;

// A weight [out, in] and its bias: panels on CPUs, else, and for the reference backend, plain
// tensors.
class Weight {
 public:
  Weight() = default;
  // Reads w: [out, in] and bias: [out] of any dtype, on any device; keeps them in `dtype` on
  // `device`.
  Weight(const at::Tensor& w, at::ScalarType dtype, at::Device device, const at::Tensor& bias = {});

  // w: [out, in] and bias: [out], kept as they are whatever the backend: the form that gradients
  // flow through.
  static Weight plain(at::Tensor w, at::Tensor bias = {});

  // The same shape, form and bias over other values: `data` is as data() is, and is kept, not
  // copied.
  Weight with_data(at::Tensor data) const;

  // Replaces the values, w: [out, in] of any dtype, in the same memory: bit for bit what the
  // constructor makes of them.
  void refill(const at::Tensor& w);

  bool defined() const { return data_.defined(); }
  int64_t out() const { return out_; }
  int64_t in() const { return in_; }
  at::ScalarType dtype() const { return data_.scalar_type(); }
  size_t bytes() const { return data_.nbytes(); }
  WeightForm form() const { return form_; }
  const at::Tensor& data() const { return data_; }  // panels [1-d], or [out, in]
  // float beside panels, else of dtype(); or undefined
  const at::Tensor& bias() const { return bias_; }
  at::Tensor unpacked() const;  // [out, in]

 private:
  at::Tensor data_, bias_;
  int64_t out_ = 0, in_ = 0;
  WeightForm form_ = WeightForm::kPlain;
};

}  // namespace valora::ops
