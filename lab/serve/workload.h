// Builds the request bodies of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/serve/load.h"
#include "lab/serve/prompt_maker.h"

namespace valora::bench {

struct BenchRequest {
  std::string path;  // "/v1/completions"
  std::string model;
  std::string body;
  int output_tokens = 0;
};

// Makes `count` requests with seeds from first_seed on, so that a warm-up and the run share none.
// Requests without images are completions of token ids; those with images are chats. All bodies are
// made before the first is sent. kInvalidArgument if they would take more than 4 GiB.
Result<std::vector<BenchRequest>> make_requests(const ServeLoad& load,
                                                const std::vector<std::string>& models,
                                                const PromptMaker& prompts, int count,
                                                uint64_t first_seed);

}  // namespace valora::bench
