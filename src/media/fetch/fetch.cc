#include <algorithm>

#include <fmt/format.h>

#include "base/text/base64.h"
#include "base/text/strings.h"
#include "media/fetch/fetchers.h"

namespace valora::media {
namespace {

// Bounds the number of small allocations for one URL full of commas.
constexpr int64_t kMaxListedFrames = 8192;

// In lower case; empty if there is no colon.
std::string scheme_of(std::string_view url) {
  const size_t colon = url.find(':');
  return colon == url.npos ? "" : lower_case(url.substr(0, std::min<size_t>(colon, 16)));
}

// "video/jpeg" from "video/jpeg;base64,…", in lower case.
std::string media_type(std::string_view data_url_rest) {
  // No media type is this long, but a URL without a comma may be as long as a request body.
  const std::string_view head = data_url_rest.substr(0, 256);
  return lower_case(head.substr(0, head.find_first_of(";,")));
}

bool is_base64(std::string_view head) {
  const size_t semicolon = head.rfind(';');
  return semicolon != std::string_view::npos &&
         lower_case(head.substr(semicolon + 1, 16)) == "base64";
}

Result<std::vector<Bytes>> one_item(Result<Bytes> bytes) {
  if (!bytes.ok()) return bytes.error();
  std::vector<Bytes> items;
  items.push_back(std::move(bytes).value());
  return items;
}

}  // namespace

const char* kind_name(MediaKind kind) { return kind == MediaKind::kImage ? "image" : "video"; }

Error too_large(MediaKind kind, size_t max_bytes) {
  return {ErrorCode::kPayloadTooLarge,
          fmt::format("the {} is over the limit of {} bytes", kind_name(kind), max_bytes),
          {}};
}

bool is_remote(std::string_view url) {
  const std::string scheme = scheme_of(url);
  return scheme == "http" || scheme == "https";
}

Result<std::vector<Bytes>> fetch_data(std::string_view rest, MediaKind kind, size_t max_bytes) {
  const size_t comma = rest.find(',');
  if (comma == std::string_view::npos) return invalid("the data URL has no comma before its data");
  const std::string_view head = rest.substr(0, comma);
  std::string_view data = rest.substr(comma + 1);
  if (!is_base64(head))
    return invalid("the data URL is not base64: only data:<type>;base64,<data> is supported");
  // The text may be longer than its bytes need, because of padding and white space: allow an
  // eighth.
  if (data.size() / 4 * 3 > max_bytes + max_bytes / 8 + 3) return too_large(kind, max_bytes);

  const bool list = kind == MediaKind::kVideo && media_type(rest) == "video/jpeg";
  if (list && std::count(data.begin(), data.end(), ',') >= kMaxListedFrames)
    return invalid(fmt::format("the video lists more than {} frames", kMaxListedFrames));
  std::vector<Bytes> items;
  size_t total = 0;
  while (true) {
    const size_t end = list ? data.find(',') : std::string_view::npos;
    VALORA_TRY(bytes, decode_base64(data.substr(0, end)));
    if (bytes.empty())
      return invalid(list ? fmt::format("frame {} of the video is empty", items.size())
                          : "the data URL is empty");
    total += bytes.size();
    if (total > max_bytes) return too_large(kind, max_bytes);
    items.push_back(std::move(bytes));
    if (end == std::string_view::npos) return items;
    data.remove_prefix(end + 1);
  }
}

Result<std::vector<Bytes>> fetch(const std::string& url, MediaKind kind, size_t max_bytes,
                                 const FetchPolicy& policy, const std::stop_token& stop) {
  const std::string scheme = scheme_of(url);
  if (scheme.empty())
    return invalid(
        fmt::format("the {} URL has no scheme: use data:, file:// or http(s)://", kind_name(kind)));
  const std::string_view rest = std::string_view(url).substr(scheme.size() + 1);
  if (scheme == "data") return fetch_data(rest, kind, max_bytes);
  if (scheme == "file") return one_item(fetch_file(rest, kind, max_bytes, policy));
  if (scheme == "http" || scheme == "https")
    return one_item(fetch_http(url, kind, max_bytes, policy, stop));
  return invalid(
      fmt::format("the scheme of the {} URL is not supported: use data:, file:// or http(s)://",
                  kind_name(kind)));
}

}  // namespace valora::media
