#include "cli/rows/run_inputs.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <span>

namespace valora::cli {
namespace {

namespace fs = std::filesystem;
using Parts = std::span<const std::string>;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code unreadable;  // matches nothing
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, unreadable))
    entries.push_back(entry);
  return entries;
}

// Adds the files below `folder` that the parts of a pattern match, of which none is empty.
void match(const fs::path& folder, Parts parts,  // NOLINT(misc-no-recursion): depth of folders
           std::vector<std::string>& out) {
  const std::string& part = parts.front();
  if (part == "**") {
    if (parts.size() > 1) match(folder, parts.subspan(1), out);
    for (const auto& entry : entries_of(folder)) {
      if (is_hidden(entry.path())) continue;
      const fs::path path = folder / entry.path().filename();
      std::error_code gone;
      if (entry.is_directory(gone) && !entry.is_symlink(gone))
        match(path, parts, out);
      else if (parts.size() == 1 && entry.is_regular_file(gone))
        out.push_back(path.string());
    }
    return;
  }
  std::vector<fs::path> found;
  if (!is_pattern(part))
    found.push_back(folder / part);
  else
    for (const auto& entry : entries_of(folder)) {
      const fs::path name = entry.path().filename();
      if (::fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) == 0) found.push_back(folder / name);
    }
  for (const fs::path& path : found) {
    std::error_code gone;
    if (parts.size() > 1 && fs::is_directory(path, gone)) match(path, parts.subspan(1), out);
    if (parts.size() == 1 && fs::is_regular_file(path, gone)) out.push_back(path.string());
  }
}

std::vector<std::string> sorted(std::vector<std::string> files) {
  std::ranges::sort(files);
  files.erase(std::ranges::unique(files).begin(), files.end());
  return files;
}

}  // namespace

Result<std::vector<std::string>> matching_files(const std::string& pattern) {
  std::vector<std::string> parts, files;
  fs::path root;
  for (const fs::path& part : fs::path(pattern)) {
    if (part == part.root_path())
      root = part;
    else if (!part.empty() && (part != "**" || parts.empty() || parts.back() != "**"))
      parts.push_back(part.string());
  }
  if (!parts.empty()) match(root, parts, files);
  if (files.empty()) return not_found("--input " + pattern + " matches no file", "input");
  return sorted(std::move(files));
}

Result<std::vector<std::string>> files_below(const std::string& folder) {
  std::vector<std::string> files;
  const std::vector<std::string> parts = {"**"};
  match(folder, parts, files);
  if (files.empty()) return not_found("--input " + folder + " has no files", "input");
  return sorted(std::move(files));
}

}  // namespace valora::cli
