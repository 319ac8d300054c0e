#include "hub/client/transfer.h"

#include <algorithm>
#include <charconv>
#include <new>

#include "base/text/strings.h"
#include "base/text/visible_text.h"

namespace valora::hub {
namespace {

constexpr size_t kMostHeaders = 200;
constexpr long kConnectSeconds = 10;
constexpr long kBufferBytes = 256 << 10;

void start_curl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)started;
}

std::string part_of(CURLU* url, CURLUPart part, unsigned int flags) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string out = text;
  curl_free(text);
  return out;
}

// "scheme://host:port" in lower case; empty: not a URL.
std::string origin_of(const std::string& text) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(curl_url(), curl_url_cleanup);
  if (!url || curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return {};
  return lower_case(part_of(url.get(), CURLUPART_SCHEME, 0) + "://" +
                    part_of(url.get(), CURLUPART_HOST, 0) + ":" +
                    part_of(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
}

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin));
}

}  // namespace

bool same_origin(const std::string& left, const std::string& right) {
  const std::string origin = origin_of(left);
  return !origin.empty() && origin == origin_of(right);
}

std::string shown_url(const std::string& url) {
  return visible(shortened(url.substr(0, url.find('?'))));
}

std::string Reply::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

bool Reply::may_pass() const {
  switch (code) {
    case CURLE_OK: return status == 408 || status == 429 || (status >= 500 && status != 501);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_OUT_OF_MEMORY: return false;
    default: return true;
  }
}

std::chrono::milliseconds Reply::retry_after() const {
  const std::string text = header("retry-after");
  int64_t seconds = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (read.ec != std::errc() || seconds < 0 || seconds > 24 * 3600) return {};
  return std::chrono::seconds(seconds);
}

std::string reason_of(const Reply& reply) {
  if (reply.code == CURLE_OK) return "status " + std::to_string(reply.status);
  if (reply.code == CURLE_UNSUPPORTED_PROTOCOL) return "a redirect to a URL that is not https";
  return curl_easy_strerror(reply.code);
}

Transfer::Transfer(const HubSettings& settings) : settings_(settings) {
  start_curl();
  curl_.reset(curl_easy_init());
  if (!curl_) throw std::bad_alloc();
}

long Transfer::status() const {
  long status = 0;
  curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
  return status;
}

size_t Transfer::take_header(const char* data, size_t, size_t count, void* user) {
  auto& self = *static_cast<Transfer*>(user);
  const std::string_view line(data, count);
  try {
    if (line.starts_with("HTTP/")) self.headers_.clear();  // an interim reply came before
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos && self.headers_.size() < kMostHeaders)
      self.headers_[lower_case(line.substr(0, colon))] = trimmed(line.substr(colon + 1));
  } catch (const std::bad_alloc&) {
    return 0;  // exceptions must not pass through libcurl
  }
  return count;
}

size_t Transfer::take_body(const char* data, size_t, size_t count, void* user) {
  auto& self = *static_cast<Transfer*>(user);
  const long status = self.status();
  if (status != 200 && status != 206) return count;
  try {
    return self.request_.take && self.request_.take({data, count}) ? count : 0;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

void Transfer::set_headers() {
  curl_slist* list = nullptr;
  if (!settings_.token.empty() && same_origin(request_.url, settings_.endpoint))
    list = curl_slist_append(list, ("Authorization: Bearer " + settings_.token).c_str());
  list_.reset(list);
  curl_easy_setopt(curl_.get(), CURLOPT_HTTPHEADER, list);
}

void Transfer::prepare(Request request) {
  request_ = std::move(request);
  headers_.clear();
  CURL* const curl = curl_.get();
  curl_easy_reset(curl);
  curl_easy_setopt(curl, CURLOPT_URL, request_.url.c_str());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR,
                   settings_.endpoint.starts_with("http://") ? "http,https" : "https");
  // HTTP/2 would send all pieces over one connection.
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, kBufferBytes);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "valora/" VALORA_VERSION);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(settings_.silence.count()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request_.limit.count()));
  curl_easy_setopt(curl, CURLOPT_NOBODY, request_.head ? 1L : 0L);
  if (!settings_.certificates.empty())
    curl_easy_setopt(curl, CURLOPT_CAINFO, settings_.certificates.c_str());
  if (const auto& range = request_.range)
    curl_easy_setopt(curl, CURLOPT_RANGE,
                     (std::to_string(range->begin) + "-" + std::to_string(range->end - 1)).c_str());
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
  set_headers();
}

Reply Transfer::reply(CURLcode code) {
  Reply reply{.code = code, .headers = headers_};
  if (code != CURLE_OK && code != CURLE_WRITE_ERROR) return reply;
  reply.status = status();
  char* redirect = nullptr;
  curl_easy_getinfo(curl_.get(), CURLINFO_REDIRECT_URL, &redirect);
  if (redirect != nullptr && reply.status >= 300 && reply.status < 400) reply.redirect = redirect;
  return reply;
}

}  // namespace valora::hub
