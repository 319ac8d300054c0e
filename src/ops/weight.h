// The weight of a linear in the layout that is fastest on its device, as floats or as integers.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>

#include "kernels/types/weight_form.h"
#include "ops/input_rounding.h"
#include "ops/quantised_tensor.h"

namespace valora::ops {

using kernels::WeightForm;

// Layout and compute dtype: those of the adapters and activations that a weight is used with. How
// the weight itself is stored is its encoding, which nothing else has to match.
struct WeightFormat {
  WeightForm form = WeightForm::kPlain;
  at::ScalarType dtype = at::kFloat;
  bool operator==(const WeightFormat&) const = default;
};

enum class Element : uint8_t { kFloat /* of the compute dtype */, kInt8, kInt4 };

// How the values of a weight are stored.
struct Encoding {
  Element element = Element::kFloat;
  int64_t group = 0;  // integers: inputs per scale
  // Integers: whether products round their inputs to 8 bits too
  // (kernels/cpu/product/byte_product.h).
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

  // Keeps the integers of w on CPUs. With the reference backend they are decoded to `dtype`. Throws
  // c10::Error on other devices, if w.check() does, and for groups that are neither a multiple of 8
  // inputs nor all of them. byte_inputs: products round their inputs to 8 bits, with a scale per
  // row and group, or part of a group; the reference backend does not.
  Weight(const QuantisedTensor& w, at::ScalarType dtype, at::Device device,
         const at::Tensor& bias = {}, bool byte_inputs = false);

  // Whether integers in such groups of `in` inputs can be kept: a multiple of 8 inputs, or all.
  static bool holds_groups(int64_t group, int64_t in);

  // Products round their inputs first.
  void set_input_rounding(const InputRounding& rounding) { input_rounding_ = rounding; }
  const std::optional<InputRounding>& input_rounding() const { return input_rounding_; }

  // Keeps w: [out, in] and bias: [out] as plain tensors with every backend, for training.
  static Weight plain(at::Tensor w, at::Tensor bias = {});

  // The same shape, layout and bias with other values, in floats of dtype(). `data`: of the sizes
  // of data(), or, if this has integers, [elements()]; it is shared, not copied.
  Weight with_data(at::Tensor data) const;
  // The same with its values and its bias in other memory. bias: like bias().
  Weight with_memory(at::Tensor data, at::Tensor bias) const;

  // Replaces the values in place. w: [out, in] of any dtype. The result is bit-identical to that of
  // the constructor. Throws c10::Error for integers.
  void refill(const at::Tensor& w);

  bool defined() const { return data_.defined(); }
  int64_t out() const { return out_; }
  int64_t in() const { return in_; }
  at::ScalarType dtype() const { return dtype_; }  // compute dtype
  const Encoding& encoding() const { return encoding_; }
  bool quantised() const { return encoding_.element != Element::kFloat; }
  size_t bytes() const { return data_.nbytes(); }
  // Elements of the values in floats of dtype() in this layout.
  int64_t elements() const;
  WeightForm form() const { return form_; }
  WeightFormat format() const { return {form_, dtype()}; }
  // Panels [1-d], or [out, in]; integers: bytes [1-d].
  const at::Tensor& data() const { return data_; }
  // Null for floats.
  const IntegerWeight* integers() const { return integers_.get(); }
  // float with panels, otherwise of dtype(); undefined if there is none
  const at::Tensor& bias() const { return bias_; }
  at::Tensor unpacked() const;  // [out, in], of dtype(); integers: decoded, in float

 private:
  void set_bias(const at::Tensor& bias, at::Device device);

  at::Tensor data_, bias_;
  std::shared_ptr<const IntegerWeight> integers_;
  at::ScalarType dtype_ = at::kFloat;
  Encoding encoding_;
  std::optional<InputRounding> input_rounding_;
  int64_t out_ = 0, in_ = 0;
  WeightForm form_ = WeightForm::kPlain;
};

}  // namespace valora::ops
