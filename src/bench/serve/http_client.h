// Many HTTP requests at once on the calling thread, through libcurl.
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
  std::string_view body;  // empty: GET, else POST of JSON; must stay where it is until on_done
  // status: of the response these bytes belong to.
  std::function<void(std::string_view bytes, int status)> on_bytes;
  // failure: why there is no complete response ("timed out", "could not connect", …); empty: there
  // is one.
  std::function<void(int status, const std::string& failure)> on_done;
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

class HttpClient {
 public:
  // url: of the server, without a path. timeout_seconds: of each call.
  HttpClient(std::string url, const std::string& api_key, int timeout_seconds);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Sent and answered by the polls that follow.
  void start(const HttpCall& call);
  // Waits until something happens, at most so long; runs the callbacks.
  void poll(double max_seconds);
  int active() const;

  // One call by itself. kUnavailable when there is no answer.
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
