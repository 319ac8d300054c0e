#include <fcntl.h>
#include <fmt/format.h>
#include <climits>

#include "base/files/input_folder.h"
#include "media/fetch/fetchers.h"

namespace valora::media {
namespace {

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
  // Files outside the root and missing files get the same message, so that clients learn nothing
  // about the file system.
  const std::string& root = policy.allowed_local_path;
  const auto below = path.starts_with('/') ? path_below(root, path) : std::nullopt;
  if (!below || below->empty())
    return invalid(
        fmt::format("the {} is not a file under the allowed local media path", kind_name(kind)));

  // O_NONBLOCK: opening a named pipe would block; opened without blocking, it is then refused.
  const int descriptor = open_below(root, *below, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return invalid(fmt::format("the {} file cannot be opened", kind_name(kind)));
  const auto file = InputFile::from_descriptor(fmt::format("the {}", kind_name(kind)), descriptor);
  if (!file.ok()) return invalid(file.error().message);
  if (file->size() > max_bytes) return too_large(kind, max_bytes);
  if (file->size() == 0) return invalid(fmt::format("the {} file is empty", kind_name(kind)));
  Bytes bytes(file->size());
  const auto read = file->read(0, {reinterpret_cast<char*>(bytes.data()), bytes.size()});
  if (!read.ok() || *read < bytes.size())
    return invalid(fmt::format("the {} file cannot be read", kind_name(kind)));
  return bytes;
}

}  // namespace valora::media
