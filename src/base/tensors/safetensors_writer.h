// Writes a safetensors file (base/tensors/safetensors.h) atomically.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensors/safetensors.h"

namespace valora {

struct NamedTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const uint8_t> bytes;  // row-major
};

// Orders tensors by dtype, widest first, so that all are aligned, then by name. `metadata` becomes
// the header's "__metadata__".
Status write_safetensors(const std::string& path, std::vector<NamedTensor> tensors,
                         const std::map<std::string, std::string>& metadata = {});

}  // namespace valora
