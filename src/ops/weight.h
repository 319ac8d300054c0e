// The weight of a linear in the layout that is fastest on its device.
#pragma once

#include <ATen/ATen.h>

#include "kernels/types/weight_form.h"

namespace valora::ops {

using kernels::WeightForm;

// Operations take weights of one format together.
struct WeightFormat {
  WeightForm form = WeightForm::kPlain;
  at::ScalarType dtype = at::kFloat;
  bool operator==(const WeightFormat&) const = default;
};

// A weight [out, in] and its bias: panels on CPUs; plain tensors on other devices and with the
// reference backend.
class Weight {
 public:
  Weight() = default;
  // Copies w: [out, in] and bias: [out], of any dtype on any device, to `dtype` on `device`.
  Weight(const at::Tensor& w, at::ScalarType dtype, at::Device device, const at::Tensor& bias = {});

  // Keeps w: [out, in] and bias: [out] as plain tensors with every backend, for training.
  static Weight plain(at::Tensor w, at::Tensor bias = {});

  // The same shape, layout and bias with other values. `data` must match data(); it is shared, not
  // copied.
  Weight with_data(at::Tensor data) const;

  // Replaces the values in place. w: [out, in] of any dtype. The result is bit-identical to that of
  // the constructor.
  void refill(const at::Tensor& w);

  bool defined() const { return data_.defined(); }
  int64_t out() const { return out_; }
  int64_t in() const { return in_; }
  at::ScalarType dtype() const { return data_.scalar_type(); }
  size_t bytes() const { return data_.nbytes(); }
  WeightForm form() const { return form_; }
  WeightFormat format() const { return {form_, dtype()}; }
  const at::Tensor& data() const { return data_; }  // panels [1-d], or [out, in]
  // float with panels, otherwise of dtype(); undefined if there is none
  const at::Tensor& bias() const { return bias_; }
  at::Tensor unpacked() const;  // [out, in]

 private:
  at::Tensor data_, bias_;
  int64_t out_ = 0, in_ = 0;
  WeightForm form_ = WeightForm::kPlain;
};

}  // namespace valora::ops
