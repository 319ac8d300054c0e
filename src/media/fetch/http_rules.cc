#include "media/fetch/http_rules.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

namespace valora::media {
namespace {

constexpr size_t kMaxUrl = 8192;
// An upper bound: libcurl wakes up earlier whenever it has something to do.
constexpr int kPollMilliseconds = 1000;

// Called with the resolved address that will be used, so a later DNS answer cannot redirect the
// connection.
curl_socket_t open_public_socket(void* user, curlsocktype, curl_sockaddr* address) {
  if (is_public(address->addr))
    return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  *static_cast<bool*>(user) = true;
  return CURL_SOCKET_BAD;
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

}  // namespace

void init_curl_once() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)done;
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

bool public_only(const FetchPolicy& policy) {
  return policy.allowed_hosts.empty() && !policy.private_addresses && !policy.use_proxy;
}

void keep_rules(CURL* curl, const FetchPolicy& policy, bool* private_address) {
  if (public_only(policy)) {
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_public_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, private_address);
  }
  if (!policy.use_proxy) curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  // Do not let a pending DNS lookup delay a timeout or a stop.
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  // Redirects are followed by our code, which checks each host.
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "valora/" VALORA_VERSION);
}

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

namespace {

using Ipv6 = std::array<uint8_t, 16>;

struct Ipv4Range {
  uint32_t first;
  int bits;
};
constexpr uint32_t ipv4(uint32_t a, uint32_t b, uint32_t c) { return a << 24 | b << 16 | c << 8; }
constexpr std::array kSpecial4 = {
    Ipv4Range{ipv4(0, 0, 0), 8},       Ipv4Range{ipv4(10, 0, 0), 8},
    Ipv4Range{ipv4(100, 64, 0), 10},   Ipv4Range{ipv4(127, 0, 0), 8},
    Ipv4Range{ipv4(169, 254, 0), 16},  Ipv4Range{ipv4(172, 16, 0), 12},
    Ipv4Range{ipv4(192, 0, 0), 24},    Ipv4Range{ipv4(192, 0, 2), 24},
    Ipv4Range{ipv4(192, 168, 0), 16},  Ipv4Range{ipv4(198, 18, 0), 15},
    Ipv4Range{ipv4(198, 51, 100), 24}, Ipv4Range{ipv4(203, 0, 113), 24},
    Ipv4Range{ipv4(224, 0, 0), 3},
};

bool is_public4(uint32_t address) {
  return std::ranges::none_of(kSpecial4, [&](const Ipv4Range& range) {
    return (address ^ range.first) >> (32 - range.bits) == 0;
  });
}

uint32_t ipv4_at(const Ipv6& bytes, size_t at) {
  return uint32_t{bytes[at]} << 24 | uint32_t{bytes[at + 1]} << 16 | uint32_t{bytes[at + 2]} << 8 |
         bytes[at + 3];
}

bool begins(const Ipv6& bytes, std::initializer_list<uint8_t> prefix) {
  return std::equal(prefix.begin(), prefix.end(), bytes.begin());
}

bool is_public6(const Ipv6& bytes) {
  if (begins(bytes, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF}))  // IPv4-mapped
    return is_public4(ipv4_at(bytes, 12));
  if (begins(bytes, {0x00, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0}))  // NAT64
    return is_public4(ipv4_at(bytes, 12));
  if (begins(bytes, {0x20, 0x02})) return is_public4(ipv4_at(bytes, 2));  // 6to4
  if (begins(bytes, {0x20, 0x01, 0x0D, 0xB8})) return false;              // documentation
  if (begins(bytes, {0x20, 0x01, 0x00})) return false;                    // Teredo and others
  return (bytes[0] & 0xE0) == 0x20;  // global unicast, the only part in use
}

}  // namespace

bool is_public(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof in);
    return is_public4(ntohl(in.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 in{};
  std::memcpy(&in, &address, sizeof in);
  Ipv6 bytes{};
  std::memcpy(bytes.data(), &in.sin6_addr, bytes.size());
  return is_public6(bytes);
}

}  // namespace valora::media
