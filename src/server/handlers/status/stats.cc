#include "server/handlers/handlers.h"

#include <algorithm>

#include "server/handlers/cross_site.h"
#include "server/handlers/status/stats_json.h"
#include "server/handlers/status/stats_ticker.h"
#include "server/openai/errors.h"
#include "server/openai/json_text.h"

namespace valora::server {
namespace {

// Whose streams count together: a user's, else those of an address and key.
std::string client_of(const Service& service, const HttpRequest& request) {
  const ServedUser* user = service.user_of(request);
  return user ? "user " + user->settings.name : service.client_of(request);
}

}  // namespace

void handle_stats(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange) {
  const Viewer viewer(*service, request);
  if (request.header("accept").find("text/event-stream") == std::string_view::npos) {
    const uint64_t steps = service->metrics.steps.count();
    uint64_t last_step = steps - std::min(steps, kMostSteps);
    OrderedJson out = stats_json(*service, viewer.user(), last_step);
    out["adapters"] = adapter_stats_json(*service, viewer);
    return exchange->respond({.body = to_text(out)});
  }
  if (is_cross_site(service->options, request))
    return exchange->respond(
        error_response(403, "pages of other origins cannot hold the events of /v1/stats"));
  const auto reader = service->ticker->add(exchange, viewer.user(), client_of(*service, request));
  if (!reader)
    return exchange->respond(error_response(503, "too many clients read the events of /v1/stats"));
  // The ticker owns the exchange, so the callback must not keep the service alive.
  exchange->on_disconnect([weak = std::weak_ptr(service), reader = *reader] {
    if (const auto service = weak.lock()) service->ticker->remove(reader);
  });
}

}  // namespace valora::server
