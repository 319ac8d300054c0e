// What a bench asks of the server before it begins.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "bench/serve/http_client.h"
#include "bench/serve/prompt_maker.h"

namespace valora::bench {

// The adapters in /v1/models; where there are none, the base model alone.
Result<std::vector<std::string>> served_models(HttpClient& client);

// Prompts as the server's /tokenize cuts them. kInvalidArgument where a sequence of longest_request
// tokens is more than the model takes.
Result<PromptMaker> learn_prompts(HttpClient& client, const std::string& model, int longest_request,
                                  uint64_t seed);

}  // namespace valora::bench
