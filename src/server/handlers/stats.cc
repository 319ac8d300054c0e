#include "server/handlers/stats.h"

#include <algorithm>

#include "server/handlers/stats_json.h"
#include "server/handlers/stats_ticker.h"
#include "server/openai/errors.h"
#include "server/openai/json_text.h"

namespace valora::server {

void handle_stats(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange) {
  const ServedUser* user = service->user_of(request);
  if (request.header("accept").find("text/event-stream") == std::string_view::npos) {
    const uint64_t steps = service->metrics.steps.count();
    uint64_t last_step = steps - std::min(steps, kMostSteps);
    OrderedJson out = stats_json(*service, user, last_step);
    out["adapters"] = adapter_stats_json(*service, user);
    return exchange->respond({.body = to_text(out)});
  }
  if (!service->ticker->add(exchange, user))
    return exchange->respond(error_response(503, "too many clients read the events of /v1/stats"));
  // The ticker owns the exchange, so the callback must not keep the service alive.
  exchange->on_disconnect([weak = std::weak_ptr(service), left = exchange.get()] {
    if (const auto service = weak.lock()) service->ticker->remove(left);
  });
}

}  // namespace valora::server
