// Queries the server before a run.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "bench/serve/http_client.h"
#include "bench/serve/prompt_maker.h"

namespace valora::bench {

struct ServedModels {
  std::string base;  // empty: not listed
  std::vector<std::string> adapters;
};

// What /v1/models lists; kUnavailable if that is nothing.
Result<ServedModels> served_models(HttpClient& client);

// Makes a PromptMaker with the server's /tokenize. kInvalidArgument if longest_request (tokens of
// prompt and answer) is above the model's max_model_len.
Result<PromptMaker> learn_prompts(HttpClient& client, const std::string& model, int longest_request,
                                  uint64_t seed);

}  // namespace valora::bench
