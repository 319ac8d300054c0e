// /v1/stats: current activity of the server, once or as a stream of events.
#pragma once

#include <memory>

#include "server/handlers/service.h"

namespace valora::server {

void handle_stats(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
