// /health, /ready, /ping, /metrics, /load and /version.
#pragma once

#include <memory>

#include "server/handlers/service.h"

namespace valora::server {

void handle_health(const std::shared_ptr<Service>& service, HttpRequest request,
                   std::shared_ptr<Exchange> exchange);
void handle_metrics(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange);
void handle_load(const std::shared_ptr<Service>& service, HttpRequest request,
                 std::shared_ptr<Exchange> exchange);
void handle_version(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
