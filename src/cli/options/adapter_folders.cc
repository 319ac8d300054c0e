#include "cli/options/adapter_folders.h"

#include <algorithm>
#include <filesystem>

#include "base/files/file.h"

namespace valora::cli {

Result<std::vector<LoadAdapter>> adapter_folders(const std::string& dir) {
  std::error_code error;
  std::vector<std::filesystem::path> folders;
  for (std::filesystem::directory_iterator entry(dir, error), end; !error && entry != end;
       entry.increment(error))
    if (file_exists((entry->path() / "adapter_config.json").string()))
      folders.push_back(entry->path());
  if (error) return not_found("--lora-dir " + dir + ": " + error.message());
  std::ranges::sort(folders);
  std::vector<LoadAdapter> loads;
  for (const std::filesystem::path& folder : folders)
    loads.push_back({.name = folder.filename().string(), .path = folder.string(), .lazy = true});
  return loads;
}

}  // namespace valora::cli
