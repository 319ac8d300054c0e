// A folder that one process at a time works on.
#pragma once

#include <string>

#include "base/result.h"

namespace valora {

// Held until it is destroyed, or the process ends, however it ends.
class FolderLock {
 public:
  // kConflict where another process, or another lock of this one, holds it.
  static Result<FolderLock> take(const std::string& dir);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  explicit FolderLock(int file) : file_(file) {}
  int file_;
};

}  // namespace valora
