// Finds the media files that data files refer to. Torch-free.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "generator/data/task.h"
#include "media/image/image.h"

namespace valora::generator {

// The absolute path of a regular file. Relative paths start at `root`.
Result<std::string> find_medium(const std::string& root, const std::string& path);
// The folder at which a source's relative media paths start.
std::string media_root_of(const DataSource& source);

// Decided by the file name extension.
bool is_medium(std::string_view path, Medium::Kind kind);
std::string_view extensions_of(Medium::Kind kind);  // for errors
inline Medium::Kind medium_kind(TaskType type) {
  return type == TaskType::kVideo ? Medium::Kind::kVideo : Medium::Kind::kImage;
}

bool is_folder(const std::string& path);
// The names in a folder, sorted, without names that begin with a dot.
Result<std::vector<std::string>> names_in(const std::string& folder);

Result<media::ImageSize> picture_size(const std::string& path);

}  // namespace valora::generator
