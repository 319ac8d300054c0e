// POST /rerank and /score: how well items fit a query. A model that its folder describes as an
// embedder compares embeddings by their cosine; any other judges each pair with "yes" or "no".
#pragma once

#include <memory>

#include "server/handlers/service.h"
#include "server/http/http.h"

namespace valora::server {

// Also /v1/rerank and /v2/rerank: results with the index of the document, best first.
void handle_rerank(const std::shared_ptr<Service>& service, HttpRequest request,
                   std::shared_ptr<Exchange> exchange);
// Also /v1/score: the scores of pairs, in their order.
void handle_score(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
