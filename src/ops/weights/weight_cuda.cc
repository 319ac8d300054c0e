#include "ops/weights/weight_cuda.h"

#include "ops/device/parallel.h"

namespace valora::ops {

using kernels::cuda::IntegerMatrix;

std::pair<at::Tensor, std::shared_ptr<const IntegerMatrix>> pack_integers_cuda(
    const QuantisedTensor& w, at::Device device) {
  TORCH_CHECK(kernels::cuda::is_device_group(w.group, w.in()), "groups of ", w.group, " of ",
              w.in(), " inputs on a GPU; groups are a multiple of ", kernels::cuda::kStepInputs,
              " inputs there, or all of them");
  const auto* scales = w.scales.const_data_ptr<float>();
  const bool least = w.minimums.defined(), zeros = !least && !w.symmetric();
  auto matrix = std::make_shared<IntegerMatrix>(kernels::cuda::integer_matrix(
      static_cast<int32_t>(w.out()), static_cast<int32_t>(w.in()), w.bits,
      static_cast<int32_t>(w.group), kernels::cuda::dtype_of_scales(scales, w.scales.numel()),
      zeros, least));
  const at::Tensor bytes = at::empty({matrix->bytes}, at::kByte);
  kernels::cuda::pack_matrix(*matrix, w.values.const_data_ptr<uint8_t>(),
                             {scales, zeros ? w.zeros.const_data_ptr<uint8_t>() : nullptr,
                              least ? w.minimums.const_data_ptr<float>() : nullptr},
                             static_cast<std::byte*>(bytes.mutable_data_ptr()), torch_parallel());
  at::Tensor data = bytes.to(device);
  matrix->data = static_cast<const std::byte*>(data.const_data_ptr());
  return {std::move(data), std::move(matrix)};
}

at::Tensor unpack_cuda(const Weight& w) {
  const at::Tensor bytes = w.data().to(at::kCPU);
  IntegerMatrix matrix = *w.matrix();
  matrix.data = static_cast<const std::byte*>(bytes.const_data_ptr());
  at::Tensor values = at::empty({w.out(), w.in()}, at::kFloat);
  kernels::cuda::decode_matrix(matrix, values.mutable_data_ptr<float>(), torch_parallel());
  return values.to(w.data().device());
}

}  // namespace valora::ops
