// Queries the server before a run.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "lab/serve/http_client.h"
#include "lab/serve/prompt_maker.h"

namespace valora::bench {

struct ServedModels {
  std::string base;  // empty: not listed
  std::vector<std::string> adapters;
};

// The models listed by /v1/models; kUnavailable if there are none.
Result<ServedModels> served_models(HttpClient& client);

// Creates a PromptMaker using the server's /tokenize. kInvalidArgument if longest_request (tokens
// of prompt and answer) exceeds the model's max_model_len.
Result<PromptMaker> learn_prompts(HttpClient& client, const std::string& model, int longest_request,
                                  uint64_t seed);

}  // namespace valora::bench
