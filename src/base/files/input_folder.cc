#include "base/files/input_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/files/lfs_pointer.h"

namespace valora {
namespace {

constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
// O_NONBLOCK: opening a named pipe would block; opened without blocking, it is then refused.
constexpr int kFileFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

bool has_zero_byte(const std::string& path) { return path.find('\0') != std::string::npos; }

// Empty if the path does not exist.
std::string resolved(const std::string& path) {
  if (has_zero_byte(path)) return {};
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         std::free);
  return real ? real.get() : "";
}

void close_keeping_errno(int fd) {
  const int error = errno;
  ::close(fd);
  errno = error;
}

}  // namespace

std::optional<std::string> path_below(const std::string& root, const std::string& path) {
  const std::string top = resolved(root), real = resolved(path);
  if (top.empty() || !real.starts_with(top)) return std::nullopt;
  std::string_view rest = std::string_view(real).substr(top.size());
  if (rest.empty() || top.back() == '/') return std::string(rest);
  if (!rest.starts_with('/')) return std::nullopt;
  return std::string(rest.substr(1));
}

int open_below(const std::string& root, const std::string& path, int flags) {
  int folder = ::open(root.c_str(), kFolderFlags);
  std::string_view rest = path;
  for (size_t slash; folder >= 0 && (slash = rest.find('/')) != rest.npos;
       rest.remove_prefix(slash + 1)) {
    const std::string name(rest.substr(0, slash));
    const int next = ::openat(folder, name.c_str(), kFolderFlags | O_NOFOLLOW);
    close_keeping_errno(folder);
    folder = next;
  }
  if (folder < 0) return -1;
  const std::string last(rest.empty() ? "." : rest);
  const int fd = ::openat(folder, last.c_str(), flags | O_NOFOLLOW);
  close_keeping_errno(folder);
  return fd;
}

Result<InputFolder> InputFolder::open(const FolderPath& where) {
  int fd = -1;
  if (has_zero_byte(where.path)) {
    errno = ENOENT;
  } else if (where.root.empty()) {
    fd = ::open(where.path.c_str(), kFolderFlags);
  } else if (const auto below = path_below(where.root, where.path)) {
    fd = open_below(where.root, *below, kFolderFlags);
  }
  if (fd < 0) return not_found(where.path + " is not a folder", where.path);
  return InputFolder(where, fd);
}

InputFolder::InputFolder(InputFolder&& other) noexcept
    : where_(std::move(other.where_)), fd_(std::exchange(other.fd_, -1)) {}

InputFolder::~InputFolder() {
  if (fd_ >= 0) ::close(fd_);
}

bool InputFolder::has(const std::string& name) const {
  struct stat info{};
  return ::fstatat(fd_, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

// Resolves the link relative to the open folder, even if its path leads elsewhere by now. Download
// caches keep files in one folder and links to them in others.
int InputFolder::open_link(const std::string& name) const {
  const std::string self = "/proc/self/fd/" + std::to_string(fd_) + "/" + name;
  const auto below = path_below(where_.root, self);
  if (below) return open_below(where_.root, *below, kFileFlags);
  errno = ENOENT;
  return -1;
}

Result<InputFile> InputFolder::file(const std::string& name, size_t max_bytes) const {
  const bool bounded = !where_.root.empty();
  int fd = ::openat(fd_, name.c_str(), kFileFlags | (bounded ? O_NOFOLLOW : 0));
  const bool link = fd < 0 && errno == ELOOP && bounded;
  if (link) fd = open_link(name);
  if (link && fd < 0)
    return not_found(path_of(name) + " is a dangling link, or leads out of the allowed folder",
                     path_of(name));
  return InputFile::from_descriptor(path_of(name), fd, max_bytes);
}

Result<std::string> InputFolder::text(const std::string& name, size_t max_bytes) const {
  VALORA_TRY(opened, file(name, max_bytes));
  return opened.text();
}

Result<Json> read_json(const InputFolder& folder, const std::string& name, JsonLimits limits) {
  const std::string path = folder.path_of(name);
  VALORA_TRY(text, folder.text(name, limits.max_bytes));
  if (is_lfs_pointer(text)) return lfs_pointer(path);
  return parse_json(text, path, limits);
}

Result<Json> read_optional_json(const InputFolder& folder, const std::string& name) {
  if (!folder.has(name)) return Json(nullptr);
  return read_json(folder, name);
}

}  // namespace valora
