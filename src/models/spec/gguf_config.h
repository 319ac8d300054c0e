// The configuration of the model in a GGUF file.
#pragma once

#include <string>

#include "base/json/json.h"
#include "base/result.h"
#include "base/tensors/gguf.h"

namespace valora::models {

// The config.json of a language model, as the families read it, from its metadata
// (general.architecture) and the shapes of tensors. kUnprocessable, naming the key, for other
// architectures, for files that are no language model (vision towers, adapters), and for every
// model setting that would be ignored.
Result<Json> gguf_config(const Gguf& file);

}  // namespace valora::models
