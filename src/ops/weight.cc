#include "ops/weight.h"

#include "ops/dispatch.h"
#include "ops/weight_cpu.h"

namespace valora::ops {

Weight::Weight(const at::Tensor& w, at::ScalarType dtype, at::Device device, const at::Tensor& bias)
    : out_(w.dim() == 2 ? w.size(0) : 0), in_(w.dim() == 2 ? w.size(1) : 0) {
  TORCH_CHECK(w.dim() == 2, "a linear's weight has two dimensions, not ", w.sizes());
  data_ = w.to(at::TensorOptions().dtype(dtype).device(device)).contiguous();
  form_ = target_of(data_) == Target::kCpu ? WeightForm::kPanels : WeightForm::kPlain;
  const bool panels = form_ == WeightForm::kPanels;
  if (bias.defined())
    bias_ =
        bias.to(at::TensorOptions().dtype(panels ? at::kFloat : dtype).device(device)).contiguous();
  if (panels) data_ = pack_cpu(data_);
}

void Weight::refill(const at::Tensor& w) {
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
  weight.data_ = std::move(w);
  weight.bias_ = std::move(bias);
  return weight;
}

Weight Weight::with_data(at::Tensor data) const {
  TORCH_CHECK(
      data.sizes() == data_.sizes() && data.scalar_type() == dtype() && data.is_contiguous(),
      "other values of ", data.sizes(), " for a weight of ", data_.sizes());
  Weight other = *this;
  other.data_ = std::move(data);
  return other;
}

at::Tensor Weight::unpacked() const {
  return form_ == WeightForm::kPanels ? unpack_cpu(*this) : data_;
}

}  // namespace valora::ops
