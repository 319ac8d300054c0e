// Runs many concurrent HTTP requests on the calling thread, using libcurl. Not thread-safe, except
// wake().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace valora::bench {

struct HttpCall {
  std::string path;
  std::string_view body;  // empty: GET, else POST of JSON; must stay valid until on_done
  // Receives bytes of the response body. `status`: HTTP status.
  std::function<void(std::string_view bytes, int status)> on_bytes;
  // Called at the end. `failure`: why the response is incomplete ("timed out", "could not connect",
  // …); empty if complete.
  std::function<void(int status, const std::string& failure)> on_done;
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

class HttpClient {
 public:
  // `url`: the server's, without a path. `timeout_seconds`: per call.
  HttpClient(std::string url, const std::string& api_key, int timeout_seconds);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Starts a call. Subsequent poll() calls send it and read the response.
  void start(const HttpCall& call);
  // Waits for activity for at most max_seconds, and runs the callbacks.
  void poll(double max_seconds);
  // Ends the current poll(), even on another thread, or else the next one.
  void wake();
  int active() const;

  // Makes one blocking call. kUnavailable if the response is incomplete.
  Result<HttpAnswer> ask(const std::string& path, const std::string& body = {});

 private:
  struct Transfer;
  void finish_done();

  std::string url_;
  int timeout_seconds_;
  void* headers_ = nullptr;  // curl_slist*
  void* multi_ = nullptr;    // CURLM*
  std::vector<std::unique_ptr<Transfer>> transfers_;
};

}  // namespace valora::bench
