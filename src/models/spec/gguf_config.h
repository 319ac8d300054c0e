// The configuration of the model in a GGUF file.
#pragma once

#include <string>

#include "base/json/json.h"
#include "base/result.h"
#include "base/tensors/gguf.h"

namespace valora::models {

// The config.json of the original model, as the families read it, from the metadata of
// general.architecture llama, qwen2, qwen3 or gemma3 and the shapes of tensors. kUnprocessable,
// naming the key, for other architectures, for partial models (split files, vision towers,
// adapters), and for every model setting that would be ignored.
Result<Json> gguf_config(const Gguf& file);

}  // namespace valora::models
