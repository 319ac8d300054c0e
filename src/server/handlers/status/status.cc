#include "server/handlers/handlers.h"

#include "server/handlers/viewer.h"
#include "server/openai/errors.h"
#include "server/openai/json_text.h"

namespace valora::server {

void handle_health(const std::shared_ptr<Service>& service, HttpRequest,
                   std::shared_ptr<Exchange> exchange) {
  if (service->draining) return exchange->respond(error_response(503, "the server is draining"));
  if (!service->engine.healthy())
    return exchange->respond(error_response(503, "the engine has stopped"));
  if (const std::string standstill = service->engine.standstill(); !standstill.empty())
    return exchange->respond(error_response(503, standstill));
  exchange->respond({.content_type = ""});
}

void handle_metrics(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange) {
  exchange->respond({.content_type = "text/plain; version=0.0.4; charset=utf-8",
                     .body = service->metrics.text(Viewer(*service, request).names())});
}

void handle_load(const std::shared_ptr<Service>& service, HttpRequest,
                 std::shared_ptr<Exchange> exchange) {
  exchange->respond({.body = to_text({{"server_load", service->load.load()}})});
}

void handle_version(const std::shared_ptr<Service>&, HttpRequest,
                    std::shared_ptr<Exchange> exchange) {
  exchange->respond({.body = to_text({{"version", VALORA_VERSION}})});
}

}  // namespace valora::server
