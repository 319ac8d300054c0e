// Adapters of MLX (mlx-lm, mlx-vlm): adapters.safetensors with the transposed factors lora_a [in,
// rank] and lora_b [rank, out] and, with DoRA, the magnitude m; a scale that is not divided by the
// rank.
#pragma once

#include <memory>

#include "adapters/folder/lora_config.h"
#include "base/files/input_folder.h"
#include "base/result.h"
#include "base/tensors/safetensors.h"

namespace valora::adapters {

inline constexpr char kMlxTensors[] = "adapters.safetensors";

// True if adapter_config.json is that of MLX. A file that cannot be read is not.
bool is_mlx_adapter(const InputFolder& folder);

struct MlxAdapter {
  LoraConfig config;
  std::shared_ptr<const SafeTensors> tensors;  // named and laid out as PEFT's
};
// file: all of adapters.safetensors. kUnprocessable, naming the key or tensor, for weights that
// were trained in full, for mixtures of experts, and for the older form without "lora_parameters".
Result<MlxAdapter> read_mlx_adapter(const InputFolder& folder, const SafeTensors& file);

}  // namespace valora::adapters
