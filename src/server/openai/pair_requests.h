// Parses the bodies of /rerank and /score.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/openai/content_items.h"
#include "server/openai/requests.h"
#include "server/openai/retrieval_prompts.h"

namespace valora::server {

struct PairsBody {
  Target target;
  Sharing sharing;
  ItemFields fields;
  // One of the first for all others, or as many as those.
  std::vector<ContentItem> first, second;
  std::optional<int> truncate_prompt_tokens;
  bool use_activation = true;  // probabilities instead of differences of logits
  // Of /rerank alone.
  std::optional<int> top_n;
  bool return_documents = true;
};

// {"query": item, "documents": [item, …]}, as Jina, Cohere and vLLM have it.
Result<PairsBody> parse_rerank(std::string_view text);
// {"text_1": items, "text_2": items}, also as data_1 and data_2, or queries and documents.
Result<PairsBody> parse_score(std::string_view text);

}  // namespace valora::server
