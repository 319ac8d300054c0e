// Files and folders that are there whole or not at all: written beside, made durable, renamed.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace valora {

// Writes PATH.part and renames it. Errors (no space, no rights) name the path and leave what was
// there.
Status write_file(const std::string& path, std::span<const uint8_t> bytes);
Status write_file(const std::string& path, std::string_view text);

// fill(DIR.part) writes the files of a new folder, which then takes the place of `dir`, whatever
// was there. An error leaves the old folder and takes the new one away.
Status write_folder(const std::string& dir,
                    const std::function<Status(const std::string& staged)>& fill);

}  // namespace valora
