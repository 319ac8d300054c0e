// /v1/embeddings: the hidden state of the last prompt token, for texts and for conversations with
// pictures.
#pragma once

#include <memory>
#include <vector>

#include "server/handlers/service.h"

namespace valora::server {

void handle_embeddings(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange);

// kNotImplemented if the folder describes embeddings that are not supported.
Status check_embeds(const EmbeddingRecipe& recipe);

// Scales to unit length; a zero vector stays zero.
void normalize(std::vector<float>& values);

}  // namespace valora::server
