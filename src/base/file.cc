#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace valora {
namespace {

struct OpenFile {
  int fd = -1;
  size_t size = 0;
  ~OpenFile() {
    if (fd >= 0) ::close(fd);
  }
};

Status open_regular(const std::string& path, OpenFile& file) {
  // O_NONBLOCK: a named pipe in a model folder is refused; without it, opening would block.
  file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) return not_found(path + " does not exist", path);
    return invalid(path + " cannot be opened: " + std::strerror(error), path);
  }
  struct stat info{};
  if (::fstat(file.fd, &info) != 0 || !S_ISREG(info.st_mode))
    return invalid(path + " is not a regular file", path);
  file.size = static_cast<size_t>(info.st_size);
  return {};
}

}  // namespace

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  OpenFile file;
  VALORA_CHECK(open_regular(path, file));
  if (file.size > max_bytes)
    return Error{ErrorCode::kPayloadTooLarge,
                 path + " is larger than " + std::to_string(max_bytes) + " bytes", path};
  std::string text(file.size, '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::read(file.fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return invalid(path + " cannot be read: " + std::strerror(errno), path);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  return text;
}

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  OpenFile file;
  VALORA_CHECK(open_regular(path, file));
  if (file.size == 0) return invalid(path + " is empty", path);
  void* data = ::mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) return invalid(path + " cannot be mapped: " + std::strerror(errno), path);
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, {static_cast<const uint8_t*>(data), file.size}));
}

MappedFile::~MappedFile() { ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size()); }

}  // namespace valora
