#include "base/files/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <utility>

namespace valora {
namespace {

// If a mapped file shrinks, reading its missing pages raises SIGBUS. While a map is watched, the
// process then ends with a message that names the file.
//
// Lock-free, because the signal handler reads it.
struct WatchedMap {
  std::atomic<uintptr_t> begin = 0;  // 0: free
  std::atomic<uintptr_t> end = 0;
  std::atomic<const char*> path = nullptr;
};
std::array<WatchedMap, 1000> watched;
struct sigaction previous;

static_assert(std::atomic<uintptr_t>::is_always_lock_free);

void write_error(const char* text) {
  // If the write fails, there is no one left to tell.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

void on_bus_error(int /*signal*/, siginfo_t* info, void* /*context*/) {
  const auto place = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const WatchedMap& map : watched) {
    const uintptr_t begin = map.begin.load(std::memory_order_acquire);
    if (info->si_code <= 0 || begin == 0 || place < begin ||
        place >= map.end.load(std::memory_order_relaxed))
      continue;
    write_error("error: ");
    write_error(map.path.load(std::memory_order_relaxed));
    write_error(" became shorter, or unreadable, while it was in use\n");
    ::_exit(1);
  }
  // Another cause: restore the previous handler. A faulting instruction is executed again on
  // return.
  ::sigaction(SIGBUS, &previous, nullptr);
  if (info->si_code <= 0) ::raise(SIGBUS);
}

bool install() {
  struct sigaction action{};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  return ::sigaction(SIGBUS, &action, &previous) == 0;
}

constexpr uintptr_t kTaken = UINTPTR_MAX;  // no map begins there

// Watches [begin, begin + size). `path` must stay valid until unregister_mapping(). At most a
// thousand mappings are watched; a fault in any other one ends the process without a message.
void register_mapping(const void* begin, size_t size, const char* path) {
  static const bool installed = install();
  if (!installed) return;
  const auto place = reinterpret_cast<uintptr_t>(begin);
  for (WatchedMap& map : watched) {
    uintptr_t free = 0;
    if (!map.begin.compare_exchange_strong(free, kTaken)) continue;
    map.path = path;
    map.end = place + size;
    map.begin.store(place, std::memory_order_release);
    return;
  }
}

void unregister_mapping(const void* begin) {
  const auto place = reinterpret_cast<uintptr_t>(begin);
  for (WatchedMap& map : watched)
    if (map.begin == place) map.begin = 0;
}

}  // namespace

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
