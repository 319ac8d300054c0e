// /openapi.json: describes the endpoints as an OpenAPI document generated from the route table.
#pragma once

#include <memory>

#include "server/handlers/service.h"

namespace valora::server {

void handle_openapi(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
