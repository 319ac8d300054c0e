#include "hub/cache/blob_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace valora::hub {
namespace {

// Who held the lock before may have removed its file.
bool is_at(int file, const std::string& path) {
  struct stat open{}, there{};
  return ::fstat(file, &open) == 0 && ::stat(path.c_str(), &there) == 0 &&
         open.st_ino == there.st_ino && open.st_dev == there.st_dev;
}

}  // namespace

Result<std::optional<BlobLock>> BlobLock::try_take(const std::string& path) {
  while (true) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0664);
    if (file < 0) return unprocessable(path + " cannot be written: " + std::strerror(errno), path);
    BlobLock lock(file);
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return std::optional<BlobLock>();
      return std::optional<BlobLock>(std::move(lock));
    }
    if (is_at(file, path)) return std::optional<BlobLock>(std::move(lock));
  }
}

BlobLock::BlobLock(BlobLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

BlobLock::~BlobLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace valora::hub
