// A lock that gives one process exclusive use of a folder.
#pragma once

#include <string>

#include "base/result.h"

namespace valora {

// Held until destruction or until the process ends, however it ends.
class FolderLock {
 public:
  // kConflict if another process, or another FolderLock of this process, holds the lock.
  static Result<FolderLock> take(const std::string& dir);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  explicit FolderLock(int file) : file_(file) {}
  int file_;
};

}  // namespace valora
