// Sends a stream's events to its webhook, in order, on a thread of its own.
#pragma once

#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "media/fetch/fetch.h"
#include "streams/bounded_queue.h"
#include "streams/stream_spec.h"

namespace valora::streams {

// Each body is a JSON event, with the header "X-Valora-Signature: sha256=HEX", its HMAC-SHA256
// under the secret, if there is one. Any status from 200 to 299 accepts it. Otherwise it is sent
// again, up to kTries times with growing pauses, then dropped with a warning. If more than
// kMostWaiting wait, the oldest is dropped.
class WebhookSender {
 public:
  static constexpr size_t kMostWaiting = 256;
  static constexpr int kTries = 5;

  // The policy's hosts bound where it may send.
  WebhookSender(Webhook webhook, media::FetchPolicy policy);

  void send(std::string body) { waiting_.push(std::move(body)); }

 private:
  void run(const std::stop_token& stop);
  Status post(const std::string& body, const std::stop_token& stop) const;

  const Webhook webhook_;
  const media::FetchPolicy policy_;
  BoundedQueue<std::string> waiting_{kMostWaiting};
  std::jthread thread_;
};

// In lower-case hexadecimal digits.
std::string hmac_sha256(const std::string& key, const std::string& text);

}  // namespace valora::streams
