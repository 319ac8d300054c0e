// Lists the served models: /v1/models, /v1/models/{id} and /v1/lora_adapters.
#pragma once

#include <memory>

#include "server/handlers/service.h"

namespace valora::server {

void handle_models(const std::shared_ptr<Service>& service, HttpRequest request,
                   std::shared_ptr<Exchange> exchange);
void handle_model(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange);
void handle_lora_adapters(const std::shared_ptr<Service>& service, HttpRequest request,
                          std::shared_ptr<Exchange> exchange);

inline constexpr std::string_view kModelPrefix = "/v1/models/";

}  // namespace valora::server
