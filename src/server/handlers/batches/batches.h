// OpenAI's batches: /v1/batches.
#pragma once

#include <memory>
#include <string_view>

#include "server/handlers/service.h"

namespace valora::server {

inline constexpr std::string_view kBatchesPath = "/v1/batches";

void handle_create_batch(const std::shared_ptr<Service>& service, HttpRequest request,
                         std::shared_ptr<Exchange> exchange);
void handle_batches(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange);
void handle_batch(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange);
void handle_cancel_batch(const std::shared_ptr<Service>& service, HttpRequest request,
                         std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
