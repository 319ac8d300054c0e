// A linear's weight in the layout that is fastest on its device, as floats or integers.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>

#include "kernels/types/forms.h"
#include "ops/linear/input_rounding.h"
#include "ops/weights/quantised_tensor.h"

namespace valora::kernels::cuda {
struct IntegerMatrix;
}

namespace valora::ops {

using kernels::WeightForm;

// Layout and compute dtype, which a weight shares with the adapters and activations it is used
// with. How its own values are stored is its encoding, which nothing else has to match.
struct WeightFormat {
  WeightForm form = WeightForm::kPlain;
  at::ScalarType dtype = at::kFloat;
  bool operator==(const WeightFormat&) const = default;
};

// How a weight's values are stored.
struct Encoding {
  int bits = 0;       // of its integers (kernels/types/packed.h); 0: floats of the compute dtype
  int64_t group = 0;  // integers only: inputs per scale
  // Integers only: products also round their inputs to 8 bits (kernels/cpu/product/byte_product.h).
  bool byte_inputs = false;
  bool operator==(const Encoding&) const = default;
};

// Integers in panels (weight_cpu.h).
struct IntegerWeight;

// A weight [out, in] and its bias: panels on CPUs; plain tensors on other devices and with the
// reference backend.
class Weight {
 public:
  Weight() = default;
  // Copies w: [out, in] and bias: [out], of any dtype on any device, to `dtype` on `device`.
  Weight(const at::Tensor& w, at::ScalarType dtype, at::Device device, const at::Tensor& bias = {});

  // Keeps the integers of w on CPUs and GPUs; the reference backend decodes them to `dtype`. Throws
  // c10::Error on other devices, if w.check() does, and unless holds_groups(w.group, w.in(),
  // device). byte_inputs: products round their inputs to 8 bits, with a scale per row and group, or
  // per part of a group; only on CPUs, and not with the reference backend.
  Weight(const QuantisedTensor& w, at::ScalarType dtype, at::Device device,
         const at::Tensor& bias = {}, bool byte_inputs = false);

  // True if integers of a weight with `in` inputs can be kept in groups of this size: all inputs, a
  // multiple of 8, or on GPUs a multiple of 32.
  static bool holds_groups(int64_t group, int64_t in, at::Device device);

  // Makes products round their inputs first.
  void set_input_rounding(const InputRounding& rounding);
  const std::optional<InputRounding>& input_rounding() const { return input_rounding_; }
  // True if products take unrounded inputs, round them to integers and multiply those integers.
  bool multiplies_rounded() const;

  // Keeps w: [out, in] and bias: [out] as plain tensors with every backend, for training.
  static Weight plain(at::Tensor w, at::Tensor bias = {});

  // The same shape, layout and bias with other values, as floats of dtype(). `data` has the sizes
  // of data(), or [elements()] if this weight has integers; it is shared, not copied.
  Weight with_data(at::Tensor data) const;
  // The same with its values and bias in other memory. bias: like bias().
  Weight with_memory(at::Tensor data, at::Tensor bias) const;

  // Replaces the values in place, bit-identically to what the constructor would make. w: [out, in]
  // of any dtype. Throws c10::Error for integers.
  void refill(const at::Tensor& w);

  bool defined() const { return data_.defined(); }
  int64_t out() const { return out_; }
  int64_t in() const { return in_; }
  at::ScalarType dtype() const { return dtype_; }  // compute dtype
  const Encoding& encoding() const { return encoding_; }
  bool quantised() const { return encoding_.bits != 0; }
  size_t bytes() const { return data_.nbytes(); }
  // Number of elements if the values are floats of dtype() in this layout.
  int64_t elements() const;
  WeightForm form() const { return form_; }
  WeightFormat format() const { return {form_, dtype()}; }
  // Panels, one-dimensional, or [out, in]; integers: one-dimensional bytes.
  const at::Tensor& data() const { return data_; }
  // Null for floats, and always on GPUs.
  const IntegerWeight* integers() const { return integers_.get(); }
  // The integers on a GPU; otherwise null.
  const kernels::cuda::IntegerMatrix* matrix() const { return matrix_.get(); }
  // float for panels, otherwise dtype(); undefined if there is none
  const at::Tensor& bias() const { return bias_; }
  at::Tensor unpacked() const;  // [out, in] in dtype(); integers: decoded to float

 private:
  void set_bias(const at::Tensor& bias, at::Device device);

  at::Tensor data_, bias_;
  std::shared_ptr<const IntegerWeight> integers_;
  std::shared_ptr<const kernels::cuda::IntegerMatrix> matrix_;
  at::ScalarType dtype_ = at::kFloat;
  Encoding encoding_;
  std::optional<InputRounding> input_rounding_;
  int64_t out_ = 0, in_ = 0;
  WeightForm form_ = WeightForm::kPlain;
};

}  // namespace valora::ops
