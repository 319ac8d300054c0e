#include "server/handlers/batches/ask_row.h"

#include <utility>

#include "server/handlers/routes.h"
#include "server/openai/errors.h"

namespace valora::server {

AskRow ask_through(std::shared_ptr<Service> service) {
  return [service = std::move(service)](HttpRequest request, std::shared_ptr<Exchange> exchange) {
    const Route* route = find_route(service->options, request.method, request.path);
    // Not an answer of the row: another process may have a better engine.
    if (request.background && !service->engine.healthy())
      return exchange->respond(error_response(429, "the engine has ended; the batch waits"));
    if (route == nullptr)
      return exchange->respond(error_response(404, "the path does not exist", "url"));
    route->handler(service, std::move(request), std::move(exchange));
  };
}

}  // namespace valora::server
