// What a path that should be a model folder is instead.
#pragma once

#include <string>

#include "base/result.h"

namespace valora::models {

// Fine for a folder with config.json, and for a GGUF file (find_gguf()). Otherwise one sentence
// that says what is there and what to do: a name of the Hugging Face Hub, an adapter, several GGUF
// files, an archive.
Status check_model_folder(const std::string& path);

}  // namespace valora::models
