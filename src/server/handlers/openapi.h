// /openapi.json: the endpoints as an OpenAPI document, made from the table of routes.
#pragma once

#include <memory>

#include "server/handlers/service.h"

namespace valora::server {

void handle_openapi(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
