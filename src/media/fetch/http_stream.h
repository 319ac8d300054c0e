// The bytes of an HTTP answer while they come, for sources without an end. Keeps the rules of
// FetchPolicy at every redirect.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "media/fetch/fetch.h"

namespace valora::media {

class HttpStream {
 public:
  // Returns once the answer begins. `patience`: how long the host may send nothing. The stop token
  // must outlive the stream's use.
  static Result<std::unique_ptr<HttpStream>> open(const std::string& url, const FetchPolicy& policy,
                                                  std::chrono::milliseconds patience,
                                                  std::stop_token stop);
  ~HttpStream();
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;

  // Waits for bytes; 0 at the end of the answer. kUnavailable if the connection fails or the host
  // is silent for too long, kCancelled at a stop.
  Result<size_t> read(std::span<uint8_t> out);
  // The URL that answered, after redirects.
  const std::string& url() const;

 private:
  struct Impl;
  explicit HttpStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace valora::media
