// One HTTP request through libcurl. Redirects are left to the caller, and the token goes to the
// endpoint alone.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/settings.h"

namespace valora::hub {

inline constexpr int kMaxRedirects = 5;

// Bytes [begin, end) of a file.
struct ByteRange {
  uint64_t begin = 0, end = 0;
};

struct Request {
  std::string url;
  bool head = false;
  std::optional<ByteRange> range;
  std::chrono::milliseconds limit{0};  // for the whole request; 0: none
  // Takes the body of a status 200 or 206; false ends the request.
  std::function<bool(std::string_view)> take;
};

struct Reply {
  CURLcode code = CURLE_OK;
  long status = 0;
  std::string redirect;                        // absolute; empty: none
  std::map<std::string, std::string> headers;  // names in lower case

  std::string header(const std::string& name) const;
  // True if the same request may succeed later: the connection failed, or the server is busy.
  bool may_pass() const;
  std::chrono::milliseconds retry_after() const;  // as the server asks for; 0: it does not
};

class Transfer {
 public:
  explicit Transfer(const HubSettings& settings);
  // Prepares a request, which libcurl then performs on handle().
  void prepare(Request request);
  CURL* handle() const { return curl_.get(); }
  const Request& request() const { return request_; }
  // What came of the request, once libcurl has ended it with this code.
  Reply reply(CURLcode code);

 private:
  static size_t take_header(const char* data, size_t size, size_t count, void* user);
  static size_t take_body(const char* data, size_t size, size_t count, void* user);
  void set_headers();
  long status() const;

  struct FreeCurl {
    void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  };
  struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };
  const HubSettings& settings_;
  std::unique_ptr<CURL, FreeCurl> curl_;
  std::unique_ptr<curl_slist, FreeList> list_;
  Request request_;
  std::map<std::string, std::string> headers_;
};

// True if both URLs have the same scheme, host and port.
bool same_origin(const std::string& left, const std::string& right);

// A URL without its query, which may hold a signature, for messages.
std::string shown_url(const std::string& url);

// Why there is no reply, for messages: libcurl's words.
std::string reason_of(const Reply& reply);

}  // namespace valora::hub
