// The configuration of the model in a GGUF file.
#pragma once

#include <string>

#include "base/gguf.h"
#include "base/json.h"
#include "base/result.h"

namespace valora::models {

// What the config.json of the model has that the file was made from, as the families read it:
// metadata of general.architecture llama, qwen2, qwen3 and gemma3, and the shapes of tensors.
// kUnprocessable names the key for other architectures, for parts of models (files of several,
// vision towers, adapters), and for every setting of the model that would be ignored.
Result<Json> gguf_config(const Gguf& file);

}  // namespace valora::models
