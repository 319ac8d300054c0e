// Converts an integer linear to the tensors of compressed-tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/tensors/safetensors.h"
#include "base/tensors/safetensors_writer.h"
#include "generator/quantise/options.h"
#include "ops/weights/quantised_tensor.h"

namespace valora::generator {

struct OwnedTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;

  NamedTensor view() const { return {name, dtype, shape, bytes}; }
};

// name: of the linear in the checkpoint, without ".weight". With 16-bit inputs: weight_packed
// (integers packed into words along the inputs), weight_scale and weight_shape; with 8-bit inputs:
// weight as I8, and weight_scale. scales: the dtype to store them in, which must represent them
// exactly.
std::vector<OwnedTensor> packed_linear(const std::string& name, const ops::QuantisedTensor& linear,
                                       QuantiseScheme scheme, DType scales);

}  // namespace valora::generator
