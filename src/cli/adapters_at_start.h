// The adapters that `valora serve` loads at start.
#pragma once

#include <string>
#include <vector>

#include "api/engine.h"
#include "base/result.h"
#include "cli/named_folders.h"
#include "server/server.h"

namespace valora::cli {

struct AdapterSources {
  std::vector<std::string> lora_modules;
  std::string manifest;
  std::vector<std::string> lora_dirs;
  std::string default_mm_loras = {};
};

struct AdaptersAtStart {
  std::vector<LoadAdapter> loads;
  server::DefaultAdapters defaults;
};

// Lists the adapters to load, in order: those of --lora-modules (NAME=PATH, or JSON {"name",
// "path"}), then those of --manifest (a file; empty: none). Each folder in a manifest is loaded
// once. Each of its tasks becomes a name for the folder that answers with the task's head. A folder
// with several tasks also gets its own name. Then come the subfolders of --lora-dir that contain an
// adapter_config.json, as lazy adapters under their folder names, and last the folders of
// --default-mm-loras. Folders of the first and the last may be names, which are looked up here.
// kInvalidArgument if a name is given twice or belongs to the base model, or if
// --default-mm-loras is wrong; kNotFound if a --lora-dir is not a folder.
Result<AdaptersAtStart> adapters_at_start(const AdapterSources& sources,
                                          const std::vector<std::string>& base_names,
                                          NamedFolders& folders);

}  // namespace valora::cli
