// /v1/stats: what the server does now, once or as events.
#pragma once

#include <memory>

#include "server/handlers/service.h"

namespace valora::server {

void handle_stats(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
