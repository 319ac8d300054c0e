// HTTP as the handlers see it: requests, responses and the exchange that carries the answer. No
// sockets here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace valora::server {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string id;      // the client's X-Request-Id, or one made here
  std::string method;  // "GET"
  std::string path;    // percent-decoded, without the query
  Headers headers;
  std::string body;
  std::string peer;  // "127.0.0.1:52113"

  // The first header of that name, whatever its case; empty when absent.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  Headers headers;
};

// One request's way back to the client. Answered once: either respond(), or begin_stream(), any
// number of write() and end_stream(). Calls after the answer's end, or after the client has left,
// are ignored. An exchange that is let go of unanswered answers 500. Thread-safe.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Runs `work` on the exchange's own executor: one at a time, in order, never inside this call.
  virtual void post(std::function<void()> work) = 0;

  virtual void respond(HttpResponse response) = 0;
  virtual void begin_stream(HttpResponse head) = 0;
  virtual void write(std::string bytes) = 0;
  virtual void end_stream() = 0;
  // The request's body and what was made of it need no memory any more.
  virtual void release_body() = 0;
  // Closes the connection in the midst of the answer, or without one.
  virtual void abort() = 0;

  // `left` runs once, on the executor, if the client leaves (or reads too slowly) before the
  // answer's end; soon, when it has left already.
  virtual void on_client_left(std::function<void()> left) = 0;
};

// What a server does with requests. Both calls may come on several threads at once.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Sees the header before the body is read: a response given here is the answer, and the body is
  // not taken. `common` receives headers for every response to this request. Must be quick.
  virtual std::optional<HttpResponse> screen(const HttpRequest& head, Headers& common) = 0;
  virtual void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) = 0;
};

bool same_header_name(std::string_view a, std::string_view b);

// "%2F" becomes "/"; malformed escapes give nullopt.
std::optional<std::string> percent_decode(std::string_view text);

// A printable id of at most 128 characters is kept; anything else is replaced by a random one.
std::string request_id_from(std::string_view header);

}  // namespace valora::server
