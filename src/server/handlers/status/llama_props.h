// /props, by which clients of llama.cpp's server (Frigate) learn what a model can do.
#pragma once

#include <memory>

#include "server/handlers/service.h"

namespace valora::server {

// The query may name a `model`, by default the base model.
void handle_props(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
