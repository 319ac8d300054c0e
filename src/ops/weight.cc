#include "ops/weight.h"

#include <tuple>
#include <utility>

#include "ops/dispatch.h"
#include "ops/weight_cpu.h"

namespace valora::ops {

Weight::Weight(const at::Tensor& w, at::ScalarType dtype, at::Device device, const at::Tensor& bias)
    : dtype_(dtype), out_(w.dim() == 2 ? w.size(0) : 0), in_(w.dim() == 2 ? w.size(1) : 0) {
  TORCH_CHECK(w.dim() == 2, "a linear's weight has two dimensions, not ", w.sizes());
  data_ = w.to(at::TensorOptions().dtype(dtype).device(device)).contiguous();
  form_ = target_of(data_) == Target::kCpu ? WeightForm::kPanels : WeightForm::kPlain;
  set_bias(bias, device);
  if (form_ == WeightForm::kPanels) data_ = pack_cpu(data_);
}

Weight::Weight(const QuantisedTensor& w, at::ScalarType dtype, at::Device device,
               const at::Tensor& bias, bool byte_inputs)
    : dtype_(dtype) {
  TORCH_CHECK(device.is_cpu(), "weights in ", w.bits, " bits on ", device,
              "; they are computed on CPUs only");
  w.check();
  if (target_of(dtype, device) != Target::kCpu) {
    *this = Weight(w.decoded(), dtype, device, bias);
    return;
  }
  out_ = w.out();
  in_ = w.in();
  form_ = WeightForm::kPanels;
  encoding_ = {w.bits == 8 ? Element::kInt8 : Element::kInt4, w.group, byte_inputs};
  std::tie(data_, integers_) = pack_integers_cpu(w, byte_inputs);
  set_bias(bias, device);
}

bool Weight::holds_groups(int64_t group, int64_t in) {
  return kernels::is_integer_group(group, in);
}

void Weight::set_bias(const at::Tensor& bias, at::Device device) {
  if (!bias.defined()) return;
  const at::ScalarType type = form_ == WeightForm::kPanels ? at::kFloat : dtype_;
  bias_ = bias.to(at::TensorOptions().dtype(type).device(device)).contiguous();
}

int64_t Weight::elements() const {
  return quantised() ? panel_elements_cpu(out_, in_, dtype_) : data_.numel();
}

void Weight::refill(const at::Tensor& w) {
  TORCH_CHECK(!quantised(), "integers of a weight cannot be replaced");
  TORCH_CHECK(w.dim() == 2 && w.size(0) == out_ && w.size(1) == in_, "values of ", w.sizes(),
              " for a weight of [", out_, ", ", in_, "]");
  const at::Tensor values = w.to(data_.options()).contiguous();
  if (form_ == WeightForm::kPanels)
    pack_cpu(values, data_);
  else
    data_.copy_(values);
}

Weight Weight::plain(at::Tensor w, at::Tensor bias) {
  TORCH_CHECK(w.dim() == 2, "a linear's weight has two dimensions, not ", w.sizes());
  Weight weight;
  weight.out_ = w.size(0);
  weight.in_ = w.size(1);
  weight.dtype_ = w.scalar_type();
  weight.data_ = std::move(w);
  weight.bias_ = std::move(bias);
  return weight;
}

Weight Weight::with_data(at::Tensor data) const {
  const bool fits =
      quantised() ? data.sizes() == at::IntArrayRef{elements()} : data.sizes() == data_.sizes();
  TORCH_CHECK(fits && data.scalar_type() == dtype() && data.is_contiguous(), "other values of ",
              data.sizes(), " for a weight of ", data_.sizes());
  Weight other = *this;
  other.data_ = std::move(data);
  other.integers_ = nullptr;
  other.encoding_ = {};
  return other;
}

Weight Weight::with_memory(at::Tensor data, at::Tensor bias) const {
  TORCH_CHECK(
      bias.defined() == bias_.defined() && (!bias.defined() || bias.sizes() == bias_.sizes()),
      "another bias for a weight of ", data_.sizes());
  Weight other = with_data(std::move(data));
  other.bias_ = std::move(bias);
  return other;
}

at::Tensor Weight::unpacked() const {
  return form_ == WeightForm::kPanels ? unpack_cpu(*this) : data_;
}

}  // namespace valora::ops
