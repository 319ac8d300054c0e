// Builds the JSON of /tokenizer_info.
#pragma once

#include <string>

#include "api/options.h"
#include "base/result.h"

namespace valora::cli {

// The model folder's tokenizer_config.json, with the chat template that the engine uses; null for a
// model with a built-in format.
Result<std::string> tokenizer_info(const EngineOptions& options);

}  // namespace valora::cli
