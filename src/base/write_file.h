// Atomic writes of files and folders: written next to the target, synced, then renamed.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace valora {

// Writes PATH.part and renames it. Errors (no space, no permission) name the path and leave the old
// file unchanged.
Status write_file(const std::string& path, std::span<const uint8_t> bytes);
Status write_file(const std::string& path, std::string_view text);
// Makes the folder of the path first, if it is not there.
Status write_file_and_folder(const std::string& path, std::string_view text);

// Calls fill(DIR.part) to write a new folder, which then replaces `dir` with all that was in it. On
// an error the old folder stays and the new one is removed.
Status write_folder(const std::string& dir,
                    const std::function<Status(const std::string& staged)>& fill);

// Renames a folder, so durably as write_folder. What was at `to` is removed.
Status move_folder(const std::string& from, const std::string& to);

}  // namespace valora
