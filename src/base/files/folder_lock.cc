#include "base/files/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace valora {

Result<FolderLock> FolderLock::take(const std::string& dir) {
  const int file = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return not_found(dir + " cannot be opened: " + std::strerror(errno), dir);
  FolderLock lock(file);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0)
    return Error{ErrorCode::kConflict, dir + " is in use by another process", dir};
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace valora
