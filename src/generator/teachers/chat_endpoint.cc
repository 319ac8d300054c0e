#include "generator/teachers/chat_endpoint.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>

#include "base/text/strings.h"

namespace valora::generator {
namespace {

constexpr size_t kMostBytes = size_t{16} << 20;  // per answer
constexpr double kLongestWait = 30;

using Curl = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using Headers = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

void init_curl_once() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)done;
}

Error cancelled() { return {ErrorCode::kCancelled, "the question was cancelled", {}}; }

struct Response {
  long status = 0;  // NOLINT: libcurl's type
  std::string body;
  double retry_after = 0;
  CURLcode code = CURLE_OK;

  bool is_retryable() const {
    switch (code) {
      case CURLE_OK: return status == 429 || status >= 500;
      case CURLE_COULDNT_RESOLVE_HOST:
      case CURLE_COULDNT_CONNECT:
      case CURLE_OPERATION_TIMEDOUT:
      case CURLE_SEND_ERROR:
      case CURLE_RECV_ERROR:
      case CURLE_GOT_NOTHING:
      case CURLE_PARTIAL_FILE: return true;
      default: return false;
    }
  }
};

size_t receive(const char* data, size_t, size_t count, void* user) {
  auto& body = *static_cast<std::string*>(user);
  if (count > kMostBytes - body.size()) return 0;
  try {
    body.append(data, count);
  } catch (const std::bad_alloc&) {
    return 0;  // exceptions must not pass through libcurl
  }
  return count;
}

int abort_if_stopped(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::stop_token*>(user)->stop_requested();
}

Headers headers_of(const EndpointOptions& endpoint) {
  curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
  list = curl_slist_append(list, "Expect:");  // do not wait for 100-continue
  if (!endpoint.api_key.empty())
    list = curl_slist_append(list, ("Authorization: Bearer " + endpoint.api_key).c_str());
  return {list, curl_slist_free_all};
}

Response post(const EndpointOptions& endpoint, const std::string& url, const std::string& body,
              const std::stop_token& stop) {
  const Curl curl(curl_easy_init(), curl_easy_cleanup);
  const Headers headers = headers_of(endpoint);
  Response response;
  CURL* c = curl.get();
  curl_easy_setopt(c, CURLOPT_URL, url.c_str());
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION,
                   // Redirects are off: the API key is sent only to the configured host.
                   0L);
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_TIMEOUT_MS,
                   static_cast<long>(endpoint.timeout_seconds * 1000));  // NOLINT
  curl_easy_setopt(c, CURLOPT_USERAGENT, "valora/" VALORA_VERSION);
  curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(c, CURLOPT_POSTFIELDS, body.data());
  curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, receive);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &response.body);
  curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, abort_if_stopped);
  curl_easy_setopt(c, CURLOPT_XFERINFODATA, const_cast<std::stop_token*>(&stop));
  response.code = curl_easy_perform(c);
  curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &response.status);
  curl_off_t retry_after = 0;
  if (curl_easy_getinfo(c, CURLINFO_RETRY_AFTER, &retry_after) == CURLE_OK)
    response.retry_after = static_cast<double>(retry_after);
  return response;
}

// The message in an OpenAI error body, or else the start of the body.
std::string complaint(const Response& response) {
  if (response.code != CURLE_OK) return curl_easy_strerror(response.code);
  const auto json = parse_json(response.body, "the answer");
  std::string text = response.body;
  if (json.ok() && json->is_object() && json->contains("error")) {
    const Json& error = (*json)["error"];
    if (error.is_object() && error.contains("message") && error["message"].is_string())
      text = error["message"];
  }
  return fmt::format("HTTP {}: {}", response.status, shortened(text));
}

Result<ChatReply> read_reply(const std::string& body) {
  VALORA_TRY(json, parse_json(body, "the answer"));
  const Json::json_pointer text("/choices/0/message/content"),
      tokens("/choices/0/logprobs/content");
  if (!json.is_object() || !json.contains(text) || !json[text].is_string())
    return unprocessable("the answer has no choices[0].message.content");
  ChatReply reply{json[text], {}};
  if (!json.contains(tokens) || !json[tokens].is_array()) return reply;
  for (const Json& token : json[tokens])
    if (token.is_object() && token.contains("logprob") && token["logprob"].is_number())
      reply.logprobs.push_back(token["logprob"]);
  return reply;
}

// Returns false if stopped while waiting.
bool wait(double seconds, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
  return !stop.stop_requested();
}

std::string url_of(const EndpointOptions& endpoint) {
  std::string url = endpoint.url;
  while (url.ends_with('/')) url.pop_back();
  return url + "/chat/completions";
}

}  // namespace

Result<ChatReply> ask_chat(const EndpointOptions& endpoint, const Json& body,
                           const std::stop_token& stop) {
  init_curl_once();
  const std::string url = url_of(endpoint),
                    text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (int tried = 0;; ++tried) {
    const Response response = post(endpoint, url, text, stop);
    if (stop.stop_requested()) return cancelled();
    if (response.code == CURLE_OK && response.status == 200) {
      auto reply = read_reply(response.body);
      if (!reply.ok()) return Error{reply.error().code, url + ": " + reply.error().message, {}};
      return reply;
    }
    if (response.code == CURLE_WRITE_ERROR)
      return unprocessable(fmt::format("{}: its answer has more than {} bytes", url, kMostBytes));
    if (!response.is_retryable()) return unprocessable(url + ": " + complaint(response));
    if (tried == endpoint.retries)
      return Error{
          ErrorCode::kUnavailable,
          fmt::format("{}: gave up after {} tries: {}", url, tried + 1, complaint(response)),
          {}};
    const double pause =
        std::max(endpoint.retry_seconds * static_cast<double>(1 << std::min(tried, 16)),
                 response.retry_after);
    if (!wait(std::min(pause, kLongestWait), stop)) return cancelled();
  }
}

}  // namespace valora::generator
