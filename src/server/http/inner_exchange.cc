#include "server/http/inner_exchange.h"

#include "server/openai/errors.h"

namespace valora::server {

void InnerExchange::begin_stream(HttpResponse) {
  end(error_response(
      400, "the answer to a request within another one is not streamed; leave \"stream\" out",
      "stream"));
  leave();
}

void InnerExchange::on_disconnect(std::function<void()> left) {
  {
    const std::lock_guard lock(mutex_);
    if (!leaving_) {
      if (done_) left_ = std::move(left);
      return;
    }
  }
  post_(std::move(left));
}

std::function<void()> InnerExchange::begin_leaving() {
  const std::lock_guard lock(mutex_);
  leaving_ = true;
  return std::exchange(left_, nullptr);
}

void InnerExchange::leave() {
  if (auto left = begin_leaving()) post_(std::move(left));
  end(std::nullopt);
}

void InnerExchange::client_left() {
  if (const auto left = begin_leaving()) left();
  end(std::nullopt);
}

void InnerExchange::end(std::optional<HttpResponse> response) {
  Done done;
  std::function<void()> dropped;
  {
    const std::lock_guard lock(mutex_);
    done.swap(done_);
    dropped.swap(left_);
  }
  if (done) done(std::move(response));
}

}  // namespace valora::server
