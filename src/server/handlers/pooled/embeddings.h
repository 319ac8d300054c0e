// /v1/embeddings: the hidden state of the last prompt token, for texts and for conversations with
// pictures.
#pragma once

#include <memory>

#include "server/handlers/service.h"

namespace valora::server {

void handle_embeddings(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
