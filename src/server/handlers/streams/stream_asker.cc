#include "server/handlers/streams/stream_asker.h"

#include <utility>

#include "base/fault.h"
#include "server/handlers/batches/batch_access.h"
#include "server/handlers/generation/generation.h"
#include "server/http/inner_exchange.h"
#include "server/openai/errors.h"

namespace valora::server {

media::FetchPolicy fetch_policy(const MediaAccess& media) {
  return {.allowed_local_path = media.allowed_local_path,
          .video_devices = media.video_devices,
          .allow_http = media.allow_http,
          .allowed_hosts = media.allowed_hosts,
          .private_addresses = media.private_addresses,
          .use_proxy = media.use_proxy};
}

streams::StreamParts StreamAsker::parts(const MediaAccess& media) {
  return {.ask =
              [this](const std::string& owner, std::string body,
                     std::function<void(streams::ChatAnswer)> done) {
                return ask(owner, std::move(body), std::move(done));
              },
          .policy = fetch_policy(media),
          .video_decoder = service_->options.video_decoder,
          .videos = service_->engine.model().videos};
}

std::function<void()> StreamAsker::ask(const std::string& owner, std::string body,
                                       std::function<void(streams::ChatAnswer)> done) {
  const auto exchange = std::make_shared<InnerExchange>(
      [queue = thread_.queue()](std::function<void()> work) { queue->post(std::move(work)); },
      [done = std::move(done)](std::optional<HttpResponse> response) {
        done(response ? streams::ChatAnswer{response->status, std::move(response->body)}
                      : streams::ChatAnswer{});
      });
  const auto identity = headers_of_owner(*service_, owner);
  if (!identity) {
    exchange->respond(error_response(403, "the stream's user does not exist any more"));
    return [] {};
  }
  HttpRequest request{.id = request_id_from({}),
                      .method = "POST",
                      .path = "/v1/chat/completions",
                      .headers = *identity,
                      .body = std::move(body),
                      .peer = "stream"};
  request.headers.emplace_back("Content-Type", "application/json");
  try {
    handle_chat(service_, std::move(request), exchange);
  } catch (const std::bad_alloc&) {
    exchange->respond(error_response(out_of_memory()));
  }
  return [weak = std::weak_ptr(exchange)] {
    if (const auto alive = weak.lock()) alive->leave();
  };
}

}  // namespace valora::server
