// Lists the applications: /v1/applications.
#pragma once

#include <memory>

#include "server/handlers/service.h"

namespace valora::server {

void handle_applications(const std::shared_ptr<Service>& service, HttpRequest request,
                         std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
