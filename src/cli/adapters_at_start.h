// The adapters that `valora serve` loads at its start.
#pragma once

#include <string>
#include <vector>

#include "api/engine.h"
#include "base/result.h"

namespace valora::cli {

// Of --lora-modules (NAME=PATH, or JSON {"name", "path"}), then of --manifest (a file; empty:
// none), in the order that they are to be loaded in. Of a manifest each folder is loaded once and
// each task is a name for it, which answers with the task's head; a folder with several tasks has
// its own name besides. kInvalidArgument for a name that is given twice or that the base model has.
Result<std::vector<LoadAdapter>> adapters_at_start(const std::vector<std::string>& lora_modules,
                                                   const std::string& manifest,
                                                   const std::vector<std::string>& base_names);

}  // namespace valora::cli
