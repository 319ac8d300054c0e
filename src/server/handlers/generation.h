// /v1/chat/completions and /v1/completions. The answer is one JSON object or a stream of
// server-sent events.
#pragma once

#include <memory>

#include "server/handlers/service.h"

namespace valora::server {

void handle_chat(const std::shared_ptr<Service>& service, HttpRequest request,
                 std::shared_ptr<Exchange> exchange);
void handle_completion(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
