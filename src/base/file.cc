#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/map_faults.h"

namespace valora {

Result<InputFile> InputFile::open(const std::string& path, size_t max_bytes) {
  // O_NONBLOCK: a named pipe in a model folder is refused; without it, opening would block.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) return not_found(path + " does not exist", path);
    return invalid(path + " cannot be opened: " + std::strerror(error), path);
  }
  VALORA_TRY(file, from_descriptor(path, fd));
  if (file.size() > max_bytes)
    return Error{ErrorCode::kPayloadTooLarge,
                 path + " is larger than " + std::to_string(max_bytes) + " bytes", path};
  return file;
}

Result<InputFile> InputFile::from_descriptor(std::string name, int descriptor) {
  InputFile file(std::move(name), descriptor);
  struct stat info{};
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode))
    return invalid(file.path_ + " is not a regular file", file.path_);
  file.identity_ = {info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size),
                    info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec};
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      identity_(other.identity_) {}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<size_t> InputFile::read(size_t begin, std::span<char> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(begin + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return invalid(path_ + " cannot be read: " + std::strerror(errno), path_);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  VALORA_TRY(file, InputFile::open(path, max_bytes));
  std::string text(file.size(), '\0');
  VALORA_TRY(size, file.read(0, text));
  text.resize(size);
  return text;
}

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  VALORA_TRY(file, InputFile::open(path));
  if (file.size() == 0) return invalid(path + " is empty", path);
  void* data = ::mmap(nullptr, file.size(), PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (data == MAP_FAILED) return invalid(path + " cannot be mapped: " + std::strerror(errno), path);
  std::shared_ptr<const MappedFile> mapped(
      new MappedFile(path, {static_cast<const uint8_t*>(data), file.size()}));
  watch_map(data, file.size(), mapped->path().c_str());
  return mapped;
}

MappedFile::~MappedFile() {
  unwatch_map(bytes_.data());
  ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace valora
