// /classify: runs an adapter's task head on one or more inputs.
#pragma once

#include <memory>

#include "server/handlers/service.h"

namespace valora::server {

void handle_classify(const std::shared_ptr<Service>& service, HttpRequest request,
                     std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
