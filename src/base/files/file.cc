#include "base/files/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/files/map_faults.h"

namespace valora {

Result<InputFile> InputFile::open(const std::string& path, size_t max_bytes) {
  if (path.find('\0') != std::string::npos) return invalid("a path has a zero byte", path);
  // O_NONBLOCK: opening a named pipe would block; opened without blocking, it is then refused.
  return from_descriptor(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), max_bytes);
}

Result<InputFile> InputFile::from_descriptor(std::string name, int descriptor, size_t max_bytes) {
  if (descriptor < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) return not_found(name + " does not exist", name);
    return invalid(name + " cannot be opened: " + std::strerror(error), name);
  }
  InputFile file(std::move(name), descriptor);
  struct stat info{};
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode))
    return invalid(file.path_ + " is not a regular file", file.path_);
  file.identity_ = {info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size),
                    info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec};
  if (file.size() > max_bytes)
    return Error{ErrorCode::kPayloadTooLarge,
                 file.path_ + " is larger than " + std::to_string(max_bytes) + " bytes",
                 file.path_};
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

Result<std::string> InputFile::text() const {
  std::string text(size(), '\0');
  VALORA_TRY(read_bytes, read(0, text));
  text.resize(read_bytes);
  return text;
}

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  VALORA_TRY(file, InputFile::open(path, max_bytes));
  return file.text();
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
  register_mapping(data, file.size(), mapped->path().c_str());
  return mapped;
}

MappedFile::~MappedFile() {
  unregister_mapping(bytes_.data());
  ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace valora
