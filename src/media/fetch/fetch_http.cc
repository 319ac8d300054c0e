#include <algorithm>
#include <memory>

#include <curl/curl.h>
#include <fmt/format.h>

#include "media/fetch/fetchers.h"
#include "media/fetch/http_rules.h"
#include "media/video/stop.h"

namespace valora::media {
namespace {

constexpr int kMaxRedirects = 5;

using Curl = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using Multi = std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)>;

struct Download {
  Bytes bytes;
  size_t max_bytes = 0;
  bool over_limit = false;
  bool private_address = false;  // the host has a private address, which the policy forbids
};

size_t receive(const char* data, size_t, size_t count, void* user) {
  auto& download = *static_cast<Download*>(user);
  if (count > download.max_bytes - download.bytes.size()) {
    download.over_limit = true;
    return 0;
  }
  try {
    download.bytes.insert(download.bytes.end(), data, data + count);
  } catch (const std::bad_alloc&) {
    return 0;  // exceptions must not pass through libcurl
  }
  return count;
}

void set_options(CURL* curl, Download& download, const FetchPolicy& policy) {
  keep_rules(curl, policy, &download.private_address);
  curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(download.max_bytes));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &download);
}

// Sends one request: fills the download, or returns the URL it redirects to.
Result<std::string> get_once(CURLM* multi, CURL* curl, const std::string& url, MediaKind kind,
                             Download& download, std::chrono::milliseconds time_left,
                             const FetchPolicy& policy, const std::stop_token& stop) {
  download.bytes.clear();
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                   static_cast<long>(std::max<int64_t>(time_left.count(), 1)));
  const CURLcode code = perform(multi, curl, stop);
  VALORA_CHECK(check_stop(stop));
  if (download.over_limit || code == CURLE_FILESIZE_EXCEEDED)
    return too_large(kind, download.max_bytes);
  if (download.private_address)
    return invalid(
        fmt::format("the {} cannot be fetched: its host has no public address", kind_name(kind)));
  // The reason for a failed connection would tell a client which of the host's ports are open.
  if (code != CURLE_OK && public_only(policy))
    return invalid(fmt::format("the {} cannot be fetched", kind_name(kind)));
  if (code != CURLE_OK)
    return invalid(
        fmt::format("the {} cannot be fetched: {}", kind_name(kind), curl_easy_strerror(code)));
  char* redirect = nullptr;
  curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &redirect);
  if (redirect) return std::string(redirect);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200)
    return invalid(
        fmt::format("the {} cannot be fetched: the host answered {}", kind_name(kind), status));
  if (download.bytes.empty())
    return invalid(fmt::format("the fetched {} is empty", kind_name(kind)));
  return std::string();
}

}  // namespace

Result<Bytes> fetch_http(const std::string& url, MediaKind kind, size_t max_bytes,
                         const FetchPolicy& policy, const std::stop_token& stop) {
  if (!policy.allow_http) return invalid("http URLs are off: set --allow-media-urls to allow them");
  init_curl_once();
  const Multi multi(curl_multi_init(), curl_multi_cleanup);
  const Curl curl(curl_easy_init(), curl_easy_cleanup);
  if (!multi || !curl) return internal("libcurl cannot be initialised");
  Download download{{}, max_bytes};
  set_options(curl.get(), download, policy);

  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() +
                        (kind == MediaKind::kImage ? policy.image_timeout : policy.video_timeout);
  std::string next = url;
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    VALORA_CHECK(check_host(next, policy));
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
    VALORA_TRY(redirect,
               get_once(multi.get(), curl.get(), next, kind, download, left, policy, stop));
    if (redirect.empty()) return std::move(download.bytes);
    next = std::move(redirect);
  }
  return invalid(fmt::format("the {} cannot be fetched: more than {} redirects", kind_name(kind),
                             kMaxRedirects));
}

}  // namespace valora::media
