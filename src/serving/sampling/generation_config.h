// Reads generation_config.json: the model's default sampling settings and end-of-sequence tokens.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/request.h"
#include "base/json/json.h"
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
// end-of-sequence token, uses that of config.json, else of its text_config, else default_eos.
// kUnprocessable names the file. overrides: EngineOptions::generation_overrides; kInvalidArgument
// if they are invalid.
Result<GenerationConfig> read_generation_config(const std::string& dir, const Json& model_config,
                                                std::optional<int32_t> default_eos = {},
                                                const std::string& overrides = {});

// Completes a request's sampling parameters with the defaults and validates them. default_seed: for
// requests without a seed. kInvalidArgument names the field.
Result<SamplingSettings> resolve_sampling(const SamplingParams& params,
                                          const GenerationConfig& defaults, int max_logprobs,
                                          uint64_t default_seed);

// Lists the settings, with their values, that change the answers of transformers' generate() but
// are not applied here; empty if there are none.
std::string unserved_settings(const Json& json);

}  // namespace valora::serving
