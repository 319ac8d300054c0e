// Reads generation_config.json: the model's default sampling settings and its end-of-sequence
// tokens.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/request.h"
#include "base/json.h"
#include "serving/sampling/sampler.h"

namespace valora::serving {

struct GenerationConfig {
  std::vector<int32_t> eos_token_ids;
  double temperature = 1;  // 0 if the file has do_sample: false
  double top_p = 1;
  int top_k = 0;
  double repetition_penalty = 1;
};

// Reads DIR/generation_config.json; a missing file gives the defaults above. If it names no
// end-of-sequence token, that of config.json, of its text_config, or default_eos is taken, in this
// order. kUnprocessable names the file. overrides:
// EngineOptions::generation_overrides; kInvalidArgument if they are not usable.
Result<GenerationConfig> read_generation_config(const std::string& dir, const Json& model_config,
                                                std::optional<int32_t> default_eos = {},
                                                const std::string& overrides = {});

// Completes a request's sampling values with the defaults, and checks all of them. default_seed:
// for requests without a seed. kInvalidArgument names the field.
Result<SamplingSettings> settle_sampling(const SamplingParams& params,
                                         const GenerationConfig& defaults, int max_logprobs,
                                         uint64_t default_seed);

}  // namespace valora::serving
