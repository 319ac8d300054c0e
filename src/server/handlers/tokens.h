// /tokenize, /detokenize and /tokenizer_info.
#pragma once

#include <memory>

#include "server/handlers/service.h"

namespace valora::server {

void handle_tokenize(const std::shared_ptr<Service>& service, HttpRequest request,
                     std::shared_ptr<Exchange> exchange);
void handle_detokenize(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange);

void handle_tokenizer_info(const std::shared_ptr<Service>& service, HttpRequest request,
                           std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
