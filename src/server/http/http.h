// HTTP as handlers see it: requests, responses and the exchange that carries the answer.
// Independent of sockets.
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
  std::string id;      // the client's X-Request-Id, or a random one
  std::string method;  // "GET"
  std::string path;    // percent-decoded, without the query
  std::string query;   // as sent, without the '?'
  Headers headers;
  std::string body;
  std::string peer;         // "127.0.0.1:52113"
  bool background = false;  // a row of a batch: live requests go before it

  // The first header with this name, case-insensitive; empty if absent.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  Headers headers;
};

// Sends the answer to one request. Call either respond() once, or begin_stream(), any number of
// write() and end_stream(). Calls after the end of the answer, or after the client has
// disconnected, are ignored. An exchange that is destroyed without an answer responds 503:
// only a lack of memory loses one.
// Thread-safe.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Runs `work` on the exchange's executor: one at a time, in order, never within this call. If it
  // throws for lack of memory, `work` is lost. The other functions never throw: if memory runs out,
  // they close the connection.
  virtual void post(std::function<void()> work) = 0;

  virtual void respond(HttpResponse response) = 0;
  virtual void begin_stream(HttpResponse head) = 0;
  virtual void write(std::string bytes) = 0;
  virtual void end_stream() = 0;
  // Call once the request body and its parsed form are freed: their bytes no longer count against
  // HttpLimits::max_total_body_bytes.
  virtual void release_body() = 0;
  // Closes the connection, whether or not the answer has begun.
  virtual void abort() = 0;

  // Runs `left` once, on the executor, if the client disconnects (or reads too slowly) before the
  // end of the answer. If it has disconnected already, `left` is posted at once.
  virtual void on_disconnect(std::function<void()> left) = 0;
};

// Summary of one request and its answer, for metrics.
struct HttpOutcome {
  std::string method;
  std::string path;          // empty if the header could not be read
  int status = 0;            // 499: the client left before the end of the answer
  size_t request_bytes = 0;  // of the body
  size_t response_bytes = 0;
  double seconds = 0;
};

// Handles the requests of a server. Its methods may run on several threads at once.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Called with the request header before the body is read. A returned response is the answer, and
  // the body is not read. Adds to `common` the headers of every response to this request. Must not
  // block.
  virtual std::optional<HttpResponse> screen(const HttpRequest& head, Headers& common) = 0;
  // True if the request is for a status page, which is answered beyond the connection limit too.
  virtual bool is_status(const HttpRequest&) const { return false; }
  // Larger bodies get 413; nullopt: HttpLimits::max_body_bytes. Called after screen().
  virtual std::optional<size_t> max_body_bytes(const HttpRequest&) const { return std::nullopt; }
  // True if the bodies of requests with this header may come as messages of a WebSocket: GET with
  // Upgrade is then such a request, and each message a body.
  virtual bool takes_messages(const HttpRequest&) const { return false; }
  // Key of the client: requests of different clients take turns being handled.
  virtual std::string client_of(const HttpRequest& head) const { return head.peer; }
  // Called once per request, after its answer or after the client has disconnected. Must not block.
  virtual void on_answered(const HttpOutcome&) {}
  virtual void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) = 0;
};

bool same_header_name(std::string_view a, std::string_view b);

// "%2F" becomes "/". Returns nullopt for a malformed escape.
std::optional<std::string> percent_decode(std::string_view text);

// The decoded value of a parameter, the first of this name; nullopt if it is absent or malformed.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

// Returns `header` if it is a printable id of at most 128 characters, else a random id.
std::string request_id_from(std::string_view header);

}  // namespace valora::server
