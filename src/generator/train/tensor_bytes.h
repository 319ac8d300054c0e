// Converts tensors for safetensors_writer.h.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "base/tensors/safetensors_writer.h"

namespace valora::generator {

// A view of a contiguous CPU tensor in fp32 or bf16, which must outlive it. Throws c10::Error
// otherwise.
inline NamedTensor named(std::string name, const at::Tensor& tensor) {
  const DType dtype = tensor.scalar_type() == at::kBFloat16 ? DType::kBF16 : DType::kF32;
  TORCH_CHECK(tensor.is_contiguous() && tensor.is_cpu() &&
                  (dtype == DType::kBF16 || tensor.scalar_type() == at::kFloat),
              "a tensor of ", tensor.scalar_type(), " cannot be written");
  return {std::move(name),
          dtype,
          tensor.sizes().vec(),
          {static_cast<const uint8_t*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

}  // namespace valora::generator
