#include "cli/watch/server_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <memory>
#include <new>
#include <utility>

#include "base/json/parse_ordered.h"
#include "base/text/strings.h"
#include "media/fetch/http_rules.h"

namespace valora::cli {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;  // of an answer, or an event
constexpr long kConnectSeconds = 10;             // NOLINT: libcurl's type

// The message of an error's body, or else the start of the body.
Error error_of(long status, const std::string& body) {  // NOLINT: libcurl's type
  const OrderedJson json = parse_ordered(body);
  const OrderedJson::json_pointer at("/error/message");
  const std::string text = json.is_object() && json.contains(at) && json[at].is_string()
                               ? json[at].get<std::string>()
                               : shortened(body);
  return {status == 404 ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
          fmt::format("the server answered {}: {}", status, text),
          {}};
}

}  // namespace

bool SseReader::read(std::string_view bytes,
                     const std::function<bool(std::string_view data)>& take) {
  for (size_t end = bytes.find('\n'); end != bytes.npos; end = bytes.find('\n')) {
    line_ += bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(line_, {});
    constexpr std::string_view kData = "data: ";
    if (line.starts_with(kData) && !take(std::string_view(line).substr(kData.size()))) return false;
  }
  line_ += bytes;
  return true;
}

struct ServerClient::Transfer {
  CURL* curl = nullptr;
  std::function<bool(std::string_view)> take;  // of bodies with status 200; null: into `body`
  std::string body;
  bool enough = false;  // `take` wants no more

  static size_t receive(const char* data, size_t, size_t count, void* user) {
    auto& self = *static_cast<Transfer*>(user);
    try {
      long status = 0;  // NOLINT: libcurl's type
      curl_easy_getinfo(self.curl, CURLINFO_RESPONSE_CODE, &status);
      if (self.take && status == 200) {
        self.enough = !self.take({data, count});
        return self.enough ? 0 : count;
      }
      if (self.body.size() + count > kMostBytes) return 0;
      self.body.append(data, count);
    } catch (const std::bad_alloc&) {
      return 0;  // exceptions must not pass through libcurl
    }
    return count;
  }
};

ServerClient::ServerClient(std::string url, std::string api_key)
    : url_(std::move(url)), api_key_(std::move(api_key)) {
  while (url_.ends_with('/')) url_.pop_back();
  if (url_.ends_with("/v1")) url_.resize(url_.size() - 3);
}

Status ServerClient::perform(const char* method, const std::string& path, const std::string& body,
                             const char* accept, Transfer& transfer,
                             const std::stop_token& stop) const {
  media::init_curl_once();
  const std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi(curl_multi_init(),
                                                                    curl_multi_cleanup);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 curl_easy_cleanup);
  if (!multi || !curl) return internal("libcurl cannot be initialised");
  transfer.curl = curl.get();
  curl_slist* list = curl_slist_append(nullptr, accept);
  if (!body.empty()) list = curl_slist_append(list, "Content-Type: application/json");
  if (!api_key_.empty())
    list = curl_slist_append(list, ("Authorization: Bearer " + api_key_).c_str());
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> owned(list,
                                                                          curl_slist_free_all);
  bool private_address = false;
  media::keep_rules(curl.get(), {.private_addresses = true}, &private_address);
  curl_easy_setopt(curl.get(), CURLOPT_URL, (url_ + path).c_str());
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, list);
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl.get(), CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, Transfer::receive);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &transfer);
  if (!body.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.data());
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  }
  curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, method);
  const CURLcode code = media::perform(multi.get(), curl.get(), stop);
  if (stop.stop_requested()) return Error{ErrorCode::kCancelled, "stopped", {}};
  if (transfer.enough) return {};
  long status = 0;  // NOLINT: libcurl's type
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (code != CURLE_OK)
    return Error{
        ErrorCode::kUnavailable, fmt::format("{}: {}", url_, curl_easy_strerror(code)), {}};
  return status == 200 ? Status() : Status(error_of(status, transfer.body));
}

Result<OrderedJson> ServerClient::ask(const char* method, const std::string& path,
                                      const std::string& body, const std::stop_token& stop) const {
  Transfer transfer;
  VALORA_CHECK(perform(method, path, body, "Accept: application/json", transfer, stop));
  OrderedJson json = parse_ordered(transfer.body);
  if (!json.is_object()) return unprocessable(url_ + " does not answer as valora does");
  return json;
}

Status ServerClient::listen(const std::string& path,
                            const std::function<bool(std::string_view data)>& take,
                            const std::stop_token& stop) const {
  SseReader reader;
  Transfer transfer;
  transfer.take = [&](std::string_view bytes) { return reader.read(bytes, take); };
  return perform("GET", path, {}, "Accept: text/event-stream", transfer, stop);
}

}  // namespace valora::cli
