// generation_config.json: the model's own defaults, and its end-of-sequence tokens.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/request.h"
#include "base/json.h"
#include "engine/sampler.h"

namespace valora {

struct GenerationConfig {
  std::vector<int32_t> eos_token_ids;
  double temperature = 1;  // 0 where the file says do_sample: false
  double top_p = 1;
  int top_k = 0;
  double repetition_penalty = 1;
};

// DIR/generation_config.json where it is; eos_token_id of config.json or its text_config where the
// former names none, then the family's default.
Result<GenerationConfig> read_generation_config(const std::string& dir, const Json& model_config,
                                                std::optional<int32_t> default_eos = {});

// Every value of a request checked (kInvalidArgument with the field) and filled in; the seed is the
// caller's for requests that bring none.
Result<SamplingSettings> settle_sampling(const SamplingParams& params,
                                         const GenerationConfig& defaults, int max_logprobs,
                                         uint64_t default_seed);

}  // namespace valora
