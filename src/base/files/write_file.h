// Writes files and folders atomically: next to the target, synced, then renamed.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace valora {

// Writes PATH.part and renames it. Errors (no space, no permission) name the path; the old file is
// then unchanged.
Status write_file(const std::string& path, std::span<const uint8_t> bytes);
Status write_file(const std::string& path, std::string_view text);
// Creates the parent folder first if it does not exist.
Status write_file_and_folder(const std::string& path, std::string_view text);

// Calls fill(DIR.part) to write a new folder, then replaces `dir` and its contents by it. On error,
// removes the new folder and keeps the old one.
Status write_folder(const std::string& dir,
                    const std::function<Status(const std::string& staged)>& fill);

// Renames a folder as durably as write_folder(). Removes any folder already at `to`.
Status move_folder(const std::string& from, const std::string& to);

}  // namespace valora
