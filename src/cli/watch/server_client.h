// Asks a running server.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::cli {

// Puts the pieces of a body together to server-sent events.
class SseReader {
 public:
  // Calls `take` with the data of each event that the bytes complete, until it returns false.
  // Returns whether it always returned true.
  bool read(std::string_view bytes, const std::function<bool(std::string_view data)>& take);

 private:
  std::string line_;
};

class ServerClient {
 public:
  // url: "http[s]://HOST[:PORT]", with or without "/v1" behind it. api_key: empty: none.
  ServerClient(std::string url, std::string api_key);

  // The JSON of an answer with status 200. The server's own message for any other; kUnavailable
  // without an answer, kNotFound for 404, kCancelled at a stop.
  Result<OrderedJson> ask(const char* method, const std::string& path, const std::string& body = {},
                          const std::stop_token& stop = {}) const;
  // Reads server-sent events until `take` returns false, the server ends them, or a stop. Errors:
  // those of ask().
  Status listen(const std::string& path, const std::function<bool(std::string_view data)>& take,
                const std::stop_token& stop) const;

 private:
  struct Transfer;
  Status perform(const char* method, const std::string& path, const std::string& body,
                 const char* accept, Transfer& transfer, const std::stop_token& stop) const;

  std::string url_, api_key_;
};

}  // namespace valora::cli
