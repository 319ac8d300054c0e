// What a name is expected to be.
#pragma once

#include <cstdint>

namespace valora::hub {

enum class Kind : uint8_t { kModel, kAdapter, kAny };

inline constexpr char kModelConfig[] = "config.json";
inline constexpr char kAdapterConfig[] = "adapter_config.json";
inline constexpr char kModelWeights[] = "model.safetensors";
inline constexpr char kWeightsIndex[] = "model.safetensors.index.json";
// PEFT's, and those of mlx-lm and mlx-vlm.
inline constexpr const char* kAdapterWeights[] = {"adapter_model.safetensors",
                                                  "adapters.safetensors"};

}  // namespace valora::hub
