// A lock that gives one process exclusive use of a folder.
#pragma once

#include <string>

#include "base/result.h"

namespace valora {

// Held until it is destroyed or the process ends in any way.
class FolderLock {
 public:
  // kConflict if another process, or another lock of this one, holds it.
  static Result<FolderLock> take(const std::string& dir);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  explicit FolderLock(int file) : file_(file) {}
  int file_;
};

}  // namespace valora
