#include "media/fetch/http_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "media/fetch/http_rules.h"
#include "media/video/stop.h"

namespace valora::media {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kMostHops = 5;
constexpr size_t kMostWaiting = size_t{1} << 20;  // bytes received and not read
constexpr milliseconds kLongestPoll{250};         // a stop comes at once

Error unavailable(std::string message) { return {ErrorCode::kUnavailable, std::move(message), {}}; }

}  // namespace

struct HttpStream::Impl {
  ~Impl() {
    if (multi && curl) curl_multi_remove_handle(multi, curl);
    if (curl) curl_easy_cleanup(curl);
    if (multi) curl_multi_cleanup(multi);
  }

  static size_t receive(const char* data, size_t, size_t count, void* user) {
    auto& self = *static_cast<Impl*>(user);
    if (self.waiting() + count > kMostWaiting) {
      self.paused = true;
      return CURL_WRITEFUNC_PAUSE;
    }
    try {
      self.bytes.insert(self.bytes.end(), data, data + count);
    } catch (const std::bad_alloc&) {
      return 0;  // exceptions must not pass through libcurl
    }
    return count;
  }

  size_t waiting() const { return bytes.size() - begin; }

  bool prepare(const FetchPolicy& policy) {
    init_curl_once();
    multi = curl_multi_init();
    curl = curl_easy_init();
    if (!multi || !curl) return false;
    keep_rules(curl, policy, &private_address);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
    return true;
  }

  // Runs the transfer until there are bytes, it ends, or `until`.
  Status advance(steady_clock::time_point until) {
    while (waiting() == 0 && !done) {
      VALORA_CHECK(check_stop(stop));
      if (steady_clock::now() >= until)
        return unavailable(
            fmt::format("the host has sent nothing for {} s", patience.count() / 1000.0));
      int running = 0;
      curl_multi_perform(multi, &running);
      int left = 0;
      while (const CURLMsg* message = curl_multi_info_read(multi, &left))
        if (message->msg == CURLMSG_DONE) {
          done = true;
          code = message->data.result;
        }
      if (waiting() == 0 && !done)
        curl_multi_poll(multi, nullptr, 0, static_cast<int>(kLongestPoll.count()), nullptr);
    }
    return {};
  }

  // Begins the request; the URL it redirects to, or empty.
  Result<std::string> begin_at(const std::string& from) {
    bytes.clear();
    begin = 0;
    done = paused = false;
    code = CURLE_OK;
    curl_easy_setopt(curl, CURLOPT_URL, from.c_str());
    if (curl_multi_add_handle(multi, curl) != CURLM_OK) return internal("libcurl cannot begin");
    VALORA_CHECK(advance(steady_clock::now() + patience));
    if (private_address) return invalid("the host has no public address");
    if (done && code != CURLE_OK)
      return unavailable(fmt::format("the connection failed: {}", curl_easy_strerror(code)));
    char* redirect = nullptr;
    curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &redirect);
    if (redirect) {
      std::string to = redirect;
      curl_multi_remove_handle(multi, curl);
      return to;
    }
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) return unavailable(fmt::format("the host answered {}", status));
    return std::string();
  }

  CURLM* multi = nullptr;
  CURL* curl = nullptr;
  milliseconds patience{};
  std::stop_token stop;
  std::string url;
  std::vector<uint8_t> bytes;
  size_t begin = 0;  // of the bytes that were not read
  bool done = false, paused = false, private_address = false;
  CURLcode code = CURLE_OK;
};

HttpStream::HttpStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpStream::~HttpStream() = default;
const std::string& HttpStream::url() const { return impl_->url; }

Result<std::unique_ptr<HttpStream>> HttpStream::open(const std::string& url,
                                                     const FetchPolicy& policy,
                                                     milliseconds patience, std::stop_token stop) {
  if (!policy.allow_http) return invalid("http URLs are off: set --allow-media-urls to allow them");
  auto impl = std::make_unique<Impl>();
  impl->patience = patience;
  impl->stop = std::move(stop);
  if (!impl->prepare(policy)) return internal("libcurl cannot be initialised");
  std::string next = url;
  for (int hop = 0; hop <= kMostHops; ++hop) {
    VALORA_CHECK(check_host(next, policy));
    VALORA_TRY(redirect, impl->begin_at(next));
    if (redirect.empty()) {
      impl->url = next;
      return std::unique_ptr<HttpStream>(new HttpStream(std::move(impl)));
    }
    next = std::move(redirect);
  }
  return unavailable(fmt::format("more than {} redirects", kMostHops));
}

Result<size_t> HttpStream::read(std::span<uint8_t> out) {
  Impl& self = *impl_;
  if (self.paused && self.waiting() == 0) {
    self.paused = false;
    curl_easy_pause(self.curl, CURLPAUSE_CONT);
  }
  VALORA_CHECK(self.advance(steady_clock::now() + self.patience));
  if (self.waiting() == 0 && self.code != CURLE_OK)
    return unavailable(fmt::format("the connection failed: {}", curl_easy_strerror(self.code)));
  const size_t count = std::min(out.size(), self.waiting());
  std::memcpy(out.data(), self.bytes.data() + self.begin, count);
  self.begin += count;
  if (self.waiting() == 0) {
    self.bytes.clear();
    self.begin = 0;
  }
  return count;
}

}  // namespace valora::media
