#include <climits>
#include <cstdlib>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "media/fetchers.h"

namespace valora::media {
namespace {

struct FileDescriptor {
  int value = -1;
  ~FileDescriptor() {
    if (value >= 0) ::close(value);
  }
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '%' && i + 2 < text.size();
    const int high = escaped ? hex_digit(text[i + 1]) : -1,
              low = escaped ? hex_digit(text[i + 2]) : -1;
    if (high >= 0 && low >= 0) {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i];
    }
    if (out.back() == '\0') return invalid("the file URL has a zero byte");
  }
  return out;
}

// Empty if the path does not exist.
std::string resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         std::free);
  return real ? real.get() : "";
}

bool lies_under(const std::string& path, std::string root) {
  if (root.empty() || path.empty()) return false;
  if (root.back() != '/') root += '/';
  return path.starts_with(root);
}

Result<Bytes> read_whole(int fd, size_t size, MediaKind kind) {
  Bytes bytes(size);
  for (size_t done = 0; done < size;) {
    const ssize_t got = ::read(fd, bytes.data() + done, size - done);
    if (got <= 0) return invalid(fmt::format("the {} file cannot be read", kind_name(kind)));
    done += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace

Result<Bytes> fetch_file(std::string_view rest, MediaKind kind, size_t max_bytes,
                         const FetchPolicy& policy) {
  if (policy.allowed_local_path.empty())
    return invalid("file URLs are off: set --allowed-local-media-path to allow them");
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    const std::string_view host = rest.substr(0, rest.find('/'));
    if (!host.empty() && host != "localhost")
      return invalid("the file URL names a host: use file:///path");
    rest.remove_prefix(host.size());
  }
  if (rest.size() > PATH_MAX * 3) return invalid("the file URL is too long");
  VALORA_TRY(path, percent_decode(rest));
  // The same message for files outside the root and files that do not exist, so that clients learn
  // nothing about the file system.
  const std::string real = path.starts_with('/') ? resolved(path) : "";
  if (!lies_under(real, resolved(policy.allowed_local_path)))
    return invalid(
        fmt::format("the {} is not a file under the allowed local media path", kind_name(kind)));

  // O_NONBLOCK: a named pipe is refused; without it, opening would block.
  const FileDescriptor file{::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)};
  struct stat info{};
  if (file.value < 0 || ::fstat(file.value, &info) != 0)
    return invalid(fmt::format("the {} file cannot be opened", kind_name(kind)));
  if (!S_ISREG(info.st_mode))
    return invalid(fmt::format("the {} is not a regular file", kind_name(kind)));
  if (static_cast<uintmax_t>(info.st_size) > max_bytes) return too_large(kind, max_bytes);
  if (info.st_size == 0) return invalid(fmt::format("the {} file is empty", kind_name(kind)));
  return read_whole(file.value, static_cast<size_t>(info.st_size), kind);
}

}  // namespace valora::media
