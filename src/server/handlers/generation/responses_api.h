// OpenAI's Responses API: /v1/responses, a thin layer over chats. Answers are not stored.
#pragma once

#include <memory>

#include "server/handlers/service.h"

namespace valora::server {

void handle_responses(const std::shared_ptr<Service>& service, HttpRequest request,
                      std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
