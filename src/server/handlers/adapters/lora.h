// /v1/load_lora_adapter and /v1/unload_lora_adapter.
#pragma once

#include <memory>

#include "server/handlers/service.h"

namespace valora::server {

void handle_load_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                      std::shared_ptr<Exchange> exchange);
void handle_unload_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                        std::shared_ptr<Exchange> exchange);

// Pin an adapter's weights in the pool, or unpin them.
void handle_pin_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                     std::shared_ptr<Exchange> exchange);
void handle_unpin_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
