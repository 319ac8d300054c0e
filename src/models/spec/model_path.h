// Diagnoses a path that should be a model folder.
#pragma once

#include <string>

#include "base/result.h"

namespace valora::models {

// Ok for a folder with config.json and for a GGUF file (find_gguf()). Otherwise one sentence that
// says what the path is and what to do: a Hugging Face Hub name, an adapter, several GGUF files, an
// archive.
Status check_model_folder(const std::string& path);

}  // namespace valora::models
