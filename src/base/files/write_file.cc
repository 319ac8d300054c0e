#include "base/files/write_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace valora {
namespace {

namespace fs = std::filesystem;

Error write_error(const std::string& path, const std::string& why) {
  return unprocessable(path + " cannot be written: " + why, path);
}
Error write_error(const std::string& path, int number) {
  return write_error(path, std::strerror(number));
}

// Returns 0 or errno.
int write_all(int file, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return ::fsync(file) == 0 ? 0 : errno;
}

// A rename is durable only once its folder is synced.
void sync_folder(const fs::path& dir) {
  const int file = ::open(dir.empty() ? "." : dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  ::fsync(file);
  ::close(file);
}

}  // namespace

Status write_file(const std::string& path, std::span<const uint8_t> bytes) {
  const std::string part = path + ".part";
  const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return write_error(path, errno);
  int fault = write_all(file, bytes);
  if (::close(file) != 0 && fault == 0) fault = errno;
  if (fault == 0 && ::rename(part.c_str(), path.c_str()) != 0) fault = errno;
  if (fault != 0) {
    ::unlink(part.c_str());
    return write_error(path, fault);
  }
  sync_folder(fs::path(path).parent_path());
  return {};
}

Status write_file(const std::string& path, std::string_view text) {
  return write_file(path, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

Status write_file_and_folder(const std::string& path, std::string_view text) {
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) return invalid(folder.string() + " cannot be created: " + error.message(), path);
  return write_file(path, text);
}

Status write_folder(const std::string& dir, const std::function<Status(const std::string&)>& fill) {
  const std::string part = dir + ".part";
  std::error_code fault;
  fs::remove_all(part, fault);
  if (!fault) fs::create_directories(part, fault);
  if (fault) return write_error(dir, fault.message());
  Status filled = fill(part);
  if (!filled.ok()) {
    fs::remove_all(part, fault);
    return filled;
  }
  return move_folder(part, dir);
}

Status move_folder(const std::string& from, const std::string& to) {
  const std::string old = to + ".old";
  std::error_code fault;
  fs::remove_all(old, fault);
  if (fs::exists(to)) fs::rename(to, old, fault);
  if (!fault) fs::rename(from, to, fault);
  if (fault) return write_error(to, fault.message());
  sync_folder(fs::path(to).parent_path());
  fs::remove_all(old, fault);
  return {};
}

}  // namespace valora
