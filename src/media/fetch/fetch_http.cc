#include <algorithm>
#include <memory>

#include <curl/curl.h>
#include <fmt/format.h>
#include <strings.h>

#include "media/fetch/fetchers.h"
#include "media/fetch/public_address.h"
#include "media/video/stop.h"

namespace valora::media {
namespace {

constexpr int kMaxRedirects = 5;
constexpr size_t kMaxUrl = 8192;

using Curl = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using Multi = std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)>;
// An upper bound: libcurl wakes up earlier whenever it has something to do.
constexpr int kPollMilliseconds = 1000;

void init_curl_once() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)done;
}

// The host as libcurl parses it; empty if libcurl rejects the URL.
std::string host_of(const std::string& url) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), curl_url_cleanup);
  char* host = nullptr;
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK ||
      curl_url_get(parsed.get(), CURLUPART_HOST, &host, 0) != CURLUE_OK)
    return {};
  std::string out = host;
  curl_free(host);
  return out;
}

Status check_host(const std::string& url, const FetchPolicy& policy) {
  const std::string host = host_of(url);
  if (host.empty() || url.size() > kMaxUrl) return invalid("the http URL is malformed");
  const auto& allowed = policy.allowed_hosts;
  const auto same = [&](const std::string& name) {
    return ::strcasecmp(name.c_str(), host.c_str()) == 0;
  };
  if (!allowed.empty() && std::none_of(allowed.begin(), allowed.end(), same))
    return invalid(fmt::format("the host {} is not an allowed media host", host));
  return {};
}

struct Download {
  Bytes bytes;
  size_t max_bytes = 0;
  bool over_limit = false;
  bool private_address = false;  // the host has a private address, which the policy forbids
};

bool public_only(const FetchPolicy& policy) {
  return policy.allowed_hosts.empty() && !policy.private_addresses && !policy.use_proxy;
}

// Called with the resolved address that will be used, so a later DNS answer cannot redirect the
// connection.
curl_socket_t open_public_socket(void* user, curlsocktype, curl_sockaddr* address) {
  if (is_public(address->addr))
    return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  static_cast<Download*>(user)->private_address = true;
  return CURL_SOCKET_BAD;
}

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
  if (public_only(policy)) {
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_public_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, &download);
  }
  if (!policy.use_proxy) curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  // Do not let a pending DNS lookup delay a timeout or a stop.
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  // Redirects are followed by our code, which checks each host.
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(download.max_bytes));
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "valora/" VALORA_VERSION);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &download);
}

// Like curl_easy_perform(), but returns CURLE_ABORTED_BY_CALLBACK as soon as a stop is requested.
CURLcode perform(CURLM* multi, CURL* curl, const std::stop_token& stop) {
  if (curl_multi_add_handle(multi, curl) != CURLM_OK) return CURLE_FAILED_INIT;
  CURLcode code = CURLE_ABORTED_BY_CALLBACK;
  {
    const std::stop_callback wake(stop, [multi] { curl_multi_wakeup(multi); });
    int running = 1;
    while (running > 0 && !stop.stop_requested() && curl_multi_perform(multi, &running) == CURLM_OK)
      if (running > 0) curl_multi_poll(multi, nullptr, 0, kPollMilliseconds, nullptr);
  }
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi, &left))
    if (message->msg == CURLMSG_DONE) code = message->data.result;
  curl_multi_remove_handle(multi, curl);
  return code;
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
