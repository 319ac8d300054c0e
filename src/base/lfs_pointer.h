// Git LFS pointers: short texts that lie in the place of large files after a clone without Git LFS.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace valora {

// Whether a file that begins with these bytes is one. At least the first 8 bytes are needed; they
// are no length of a safetensors header and no JSON.
inline bool is_lfs_pointer(std::string_view begin) {
  constexpr std::string_view kBegin = "version https://git-lfs.github.com/spec/";
  return begin.size() >= 8 && begin.substr(0, kBegin.size()) == kBegin.substr(0, begin.size());
}

inline Error lfs_pointer(const std::string& path) {
  return unprocessable(path + " is a Git LFS pointer, not the file: run git lfs pull", path);
}

}  // namespace valora
