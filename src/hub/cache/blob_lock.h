// The lock of one blob, which huggingface_hub's processes take as well: an flock() on a file.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace valora::hub {

// Held until destruction or until the process ends, however it ends.
class BlobLock {
 public:
  // Absent if another process holds the lock. On file systems without locks it is held at once.
  static Result<std::optional<BlobLock>> try_take(const std::string& path);
  ~BlobLock();
  BlobLock(BlobLock&& other) noexcept;
  BlobLock& operator=(BlobLock&&) = delete;

 private:
  explicit BlobLock(int file) : file_(file) {}
  int file_;
};

}  // namespace valora::hub
