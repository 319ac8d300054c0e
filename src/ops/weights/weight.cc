#include "ops/weights/weight.h"

#include <tuple>
#include <utility>

#include "ops/device/dispatch.h"
#include "ops/weights/weight_cpu.h"
#include "ops/weights/weight_cuda.h"

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
  TORCH_CHECK(device.is_cpu() || device.is_cuda(), "weights in ", w.bits, " bits on ", device,
              "; they are computed on CPUs and GPUs");
  w.check();
  const Target target = target_of(dtype, device);
  if (target == Target::kAten) {
    *this = Weight(w.decoded(), dtype, device, bias);
    return;
  }
  TORCH_CHECK(!byte_inputs || target == Target::kCpu, "inputs are rounded on CPUs only");
  out_ = w.out();
  in_ = w.in();
  encoding_ = {w.bits, w.group, byte_inputs};
  if (target == Target::kCpu) {
    form_ = WeightForm::kPanels;
    std::tie(data_, integers_) = pack_integers_cpu(w, byte_inputs);
  } else {
    std::tie(data_, matrix_) = pack_integers_cuda(w, device);
  }
  set_bias(bias, device);
}

void Weight::set_input_rounding(const InputRounding& rounding) {
  input_rounding_ = rounding;
  if (!integers_) return;
  auto rounds = rounding_rows_cpu(*integers_, rounding);
  encoding_.byte_inputs = rounds != nullptr;
  if (rounds) integers_ = std::move(rounds);
}

bool Weight::multiplies_rounded() const { return input_rounding_ && encoding_.byte_inputs; }

bool Weight::holds_groups(int64_t group, int64_t in, at::Device device) {
  return device.is_cuda() ? kernels::cuda::is_device_group(group, in)
                          : kernels::is_integer_group(group, in);
}

void Weight::set_bias(const at::Tensor& bias, at::Device device) {
  if (!bias.defined()) return;
  const at::ScalarType type = form_ == WeightForm::kPanels ? at::kFloat : dtype_;
  bias_ = bias.to(at::TensorOptions().dtype(type).device(device)).contiguous();
}

int64_t Weight::elements() const {
  if (!quantised()) return data_.numel();
  return form_ == WeightForm::kPanels ? panel_elements_cpu(out_, in_, dtype_) : out_ * in_;
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
  TORCH_CHECK(fits && data.scalar_type() == dtype() && data.is_contiguous(),
              "the data must be contiguous ", dtype(), " of the weight's shape, with ", elements(),
              " elements; got ", data.scalar_type(), " ", data.sizes());
  Weight other = *this;
  const bool rows = quantised() && form_ == WeightForm::kPlain;
  other.data_ = rows ? data.view({out_, in_}) : std::move(data);
  other.integers_ = nullptr;
  other.matrix_ = nullptr;
  other.encoding_ = {};
  return other;
}

Weight Weight::with_memory(at::Tensor data, at::Tensor bias) const {
  TORCH_CHECK(
      bias.defined() == bias_.defined() && (!bias.defined() || bias.sizes() == bias_.sizes()),
      "the new bias does not have the shape of the bias of a weight of ", data_.sizes());
  Weight other = with_data(std::move(data));
  other.bias_ = std::move(bias);
  return other;
}

at::Tensor Weight::unpacked() const {
  if (matrix_) return unpack_cuda(*this);
  return form_ == WeightForm::kPanels ? unpack_cpu(*this) : data_;
}

}  // namespace valora::ops
