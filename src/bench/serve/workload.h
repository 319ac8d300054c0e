// The requests of a run, ready to be sent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/serve/load.h"
#include "bench/serve/prompt_maker.h"

namespace valora::bench {

struct BenchRequest {
  std::string path;  // "/v1/completions"
  std::string model;
  std::string body;
  int output_tokens = 0;
};

// `count` requests from the first_seed-th on, so that a warm-up and the run share none. Without
// images they are completions of token ids, with images a chat. All bodies are made before the
// first is sent; they may take 4 GiB together.
Result<std::vector<BenchRequest>> make_requests(const ServeLoad& load,
                                                const std::vector<std::string>& models,
                                                const PromptMaker& prompts, int count,
                                                uint64_t first_seed);

}  // namespace valora::bench
