// The kinds of tensors in an adapter file, by name.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace valora::adapters {

enum class TensorRole { kLoraA, kLoraB, kWeight, kBias };

struct TensorName {
  TensorRole role;
  std::string module;  // as in the file, without "base_model.model."
};

// "base_model.model.M.lora_A[.ADAPTER].weight", the same with lora_B, or
// "base_model.model.M.weight" / ".bias" of a module that was saved completely. Error:
// kUnprocessable naming the tensor, for every other name.
Result<TensorName> parse_tensor_name(std::string_view name);

}  // namespace valora::adapters
