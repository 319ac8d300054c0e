#include "lab/serve/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <cmath>

namespace valora::bench {
namespace {

struct CurlSetUp {
  CurlSetUp() { curl_global_init(CURL_GLOBAL_DEFAULT); }
};

std::string failure_text(CURLcode code) {
  if (code == CURLE_OK) return {};
  if (code == CURLE_OPERATION_TIMEDOUT) return "timed out";
  if (code == CURLE_COULDNT_CONNECT) return "could not connect";
  return curl_easy_strerror(code);
}

}  // namespace

struct HttpClient::Transfer {
  ~Transfer() { curl_easy_cleanup(easy); }

  int status() const {
    long code = 0;  // NOLINT: libcurl's type
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
    return static_cast<int>(code);
  }
  static size_t write(char* bytes, size_t, size_t count, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    transfer.on_bytes({bytes, count}, transfer.status());
    return count;
  }

  CURL* easy = curl_easy_init();
  decltype(HttpCall::on_bytes) on_bytes;
  decltype(HttpCall::on_done) on_done;
};

HttpClient::HttpClient(std::string url, const std::string& api_key, int timeout_seconds)
    : url_(std::move(url)), timeout_seconds_(timeout_seconds) {
  static const CurlSetUp set_up;
  while (url_.ends_with('/')) url_.pop_back();
  curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/json");
  headers = curl_slist_append(headers, "Expect:");  // do not wait for 100-continue
  if (!api_key.empty())
    headers = curl_slist_append(headers, ("Authorization: Bearer " + api_key).c_str());
  headers_ = headers;
  multi_ = curl_multi_init();
}

HttpClient::~HttpClient() {
  for (const auto& transfer : transfers_) curl_multi_remove_handle(multi_, transfer->easy);
  transfers_.clear();
  curl_multi_cleanup(multi_);
  curl_slist_free_all(static_cast<curl_slist*>(headers_));
}

void HttpClient::start(const HttpCall& call) {
  auto transfer = std::make_unique<Transfer>();
  transfer->on_bytes = call.on_bytes;
  transfer->on_done = call.on_done;
  CURL* easy = transfer->easy;
  curl_easy_setopt(easy, CURLOPT_URL, (url_ + call.path).c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_PROXY, "");  // no proxy: the server itself is being measured
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT,
                   static_cast<long>(timeout_seconds_));  // NOLINT: libcurl's type
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::write);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer.get());
  curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer.get());
  if (!call.body.empty()) {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the size is set
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call.body.data());
  }
  curl_multi_add_handle(multi_, easy);
  transfers_.push_back(std::move(transfer));
  int running = 0;
  curl_multi_perform(multi_, &running);
}

void HttpClient::poll(double max_seconds) {
  curl_multi_poll(multi_, nullptr, 0,
                  static_cast<int>(std::ceil(std::max(0.0, max_seconds) * 1000)), nullptr);
  int running = 0;
  curl_multi_perform(multi_, &running);
  finish_done();
}

void HttpClient::wake() { curl_multi_wakeup(multi_); }

void HttpClient::finish_done() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const std::string failure = failure_text(message->data.result);
    const auto at = std::find_if(transfers_.begin(), transfers_.end(),
                                 [&](const auto& t) { return t->easy == message->easy_handle; });
    const std::unique_ptr<Transfer> transfer = std::move(*at);
    transfers_.erase(at);
    curl_multi_remove_handle(multi_, transfer->easy);
    transfer->on_done(transfer->status(), failure);
  }
}

int HttpClient::active() const { return static_cast<int>(transfers_.size()); }

Result<HttpAnswer> HttpClient::ask(const std::string& path, const std::string& body) {
  HttpAnswer answer;
  std::string failure;
  bool done = false;
  start({path, body, [&](std::string_view bytes, int) { answer.body += bytes; },
         [&](int status, const std::string& why) {
           answer.status = status;
           failure = why;
           done = true;
         }});
  while (!done) poll(1);
  if (!failure.empty()) return Error{ErrorCode::kUnavailable, url_ + path + ": " + failure, "url"};
  return answer;
}

}  // namespace valora::bench
