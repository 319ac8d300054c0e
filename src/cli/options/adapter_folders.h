// The adapters of --lora-dir.
#pragma once

#include <string>
#include <vector>

#include "api/load_adapter.h"
#include "base/result.h"

namespace valora::cli {

// The subfolders of `dir` that contain an adapter_config.json, as lazy adapters under their folder
// names, sorted by name, so that every start is the same. kNotFound if `dir` is not a folder.
Result<std::vector<LoadAdapter>> adapter_folders(const std::string& dir);

}  // namespace valora::cli
