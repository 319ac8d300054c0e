// Git LFS pointers: short text files that a clone without Git LFS leaves in place of large files.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace valora {

// True if a file that begins with these bytes is a pointer. Needs at least the first 8 bytes, which
// are then neither the header length of a safetensors file nor JSON.
inline bool is_lfs_pointer(std::string_view begin) {
  constexpr std::string_view kBegin = "version https://git-lfs.github.com/spec/";
  return begin.size() >= 8 && begin.substr(0, kBegin.size()) == kBegin.substr(0, begin.size());
}

inline Error lfs_pointer(const std::string& path) {
  return unprocessable(path + " is a Git LFS pointer, not the file: run git lfs pull", path);
}

}  // namespace valora
