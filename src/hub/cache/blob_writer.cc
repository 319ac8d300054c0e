#include "hub/cache/blob_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace valora::hub {

Error BlobWriter::failed(int number) const {
  const bool full = number == ENOSPC || number == EDQUOT || number == EFBIG;
  return {ErrorCode::kUnavailable,
          path_ + (full ? " has no room: " : " cannot be written: ") + std::strerror(number) +
              (full ? "; what is loaded is kept, and the same command goes on from it once there "
                      "is room, or HF_HUB_CACHE names another folder"
                    : "; HF_HUB_CACHE names another folder"),
          path_};
}

Result<BlobWriter> BlobWriter::open(const std::string& path, uint64_t size,
                                    const std::string& digest) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  BlobWriter writer(path, file, size, digest);
  if (file < 0) return writer.failed(errno);
  VALORA_CHECK(writer.hash_what_is_there());
  return writer;
}

BlobWriter::BlobWriter(BlobWriter&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      size_(other.size_),
      written_(other.written_),
      continued_(other.continued_),
      hash_(std::move(other.hash_)) {}

BlobWriter::~BlobWriter() {
  if (file_ >= 0) ::close(file_);
}

Status BlobWriter::hash_what_is_there() {
  struct stat status{};
  if (::fstat(file_, &status) != 0) return failed(errno);
  if (static_cast<uint64_t>(status.st_size) > size_) return restart();
  std::vector<char> buffer(size_t{1} << 20);
  while (true) {
    const ssize_t got = ::read(file_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(errno);
    if (got == 0) break;
    hash_.add({buffer.data(), static_cast<size_t>(got)});
    written_ += static_cast<uint64_t>(got);
  }
  continued_ = written_ > 0;
  return {};
}

Status BlobWriter::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::write(file_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(errno);
    hash_.add(bytes.substr(0, static_cast<size_t>(got)));
    written_ += static_cast<uint64_t>(got);
    bytes.remove_prefix(static_cast<size_t>(got));
  }
  return {};
}

Status BlobWriter::restart() {
  if (::ftruncate(file_, 0) != 0 || ::lseek(file_, 0, SEEK_SET) != 0) return failed(errno);
  hash_.restart();
  written_ = 0;
  continued_ = false;
  return {};
}

Result<bool> BlobWriter::finish(const std::string& blob) {
  if (!hash_.matches()) {
    ::unlink(path_.c_str());
    return false;
  }
  if (::fdatasync(file_) != 0) return failed(errno);
  if (::rename(path_.c_str(), blob.c_str()) != 0) return failed(errno);
  return true;
}

}  // namespace valora::hub
