#include "streams/webhook_sender.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

#include "media/fetch/http_post.h"
#include "streams/sleep.h"

namespace valora::streams {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr milliseconds kPostLimit = 10s, kShortestPause = 1s;

}  // namespace

std::string hmac_sha256(const std::string& key, const std::string& text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &bytes);
  std::string out;
  for (unsigned int i = 0; i < bytes; ++i) out += fmt::format("{:02x}", digest[i]);
  return out;
}

WebhookSender::WebhookSender(Webhook webhook, media::FetchPolicy policy)
    : webhook_(std::move(webhook)),
      policy_(std::move(policy)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Status WebhookSender::post(const std::string& body, const std::stop_token& stop) const {
  std::vector<std::string> headers{"Content-Type: application/json"};
  if (!webhook_.secret.empty())
    headers.push_back("X-Valora-Signature: sha256=" + hmac_sha256(webhook_.secret, body));
  return media::http_post(webhook_.url, body, headers, policy_, kPostLimit, stop);
}

void WebhookSender::run(const std::stop_token& stop) {
  while (const auto body = waiting_.wait_and_take(stop))
    for (int attempt = 1; attempt <= kTries && !stop.stop_requested(); ++attempt) {
      const Status sent = post(*body, stop);
      if (sent.ok()) break;
      if (attempt == kTries)
        spdlog::warn("the webhook {} did not take an event: {}", without_password(webhook_.url),
                     sent.error().message);
      else
        sleep_for(kShortestPause * (1 << (attempt - 1)), stop);
    }
}

}  // namespace valora::streams
