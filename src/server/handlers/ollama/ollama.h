// Ollama's API, with --ollama-api: chats, texts, embeddings, and the list of models. Errors are
// {"error": text}; streams are a JSON object per line.
#pragma once

#include <memory>

#include "server/handlers/service.h"
#include "server/http/http.h"

namespace valora::server::ollama {

// The error as {"error": text}, which clients print as it is.
HttpResponse plain_error(HttpResponse response);

void handle_chat(const std::shared_ptr<Service>& service, HttpRequest request,
                 std::shared_ptr<Exchange> exchange);
void handle_generate(const std::shared_ptr<Service>& service, HttpRequest request,
                     std::shared_ptr<Exchange> exchange);
// /api/embed, and the older /api/embeddings.
void handle_embed(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange);
// /api/tags, and /api/ps: all models are loaded.
void handle_tags(const std::shared_ptr<Service>& service, HttpRequest request,
                 std::shared_ptr<Exchange> exchange);
void handle_show(const std::shared_ptr<Service>& service, HttpRequest request,
                 std::shared_ptr<Exchange> exchange);
void handle_version(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange);

}  // namespace valora::server::ollama
