// Helpers that read parts of adapter_config.json (adapters/folder/lora_config.h).
#pragma once

#include <string>
#include <vector>

#include "adapters/folder/lora_config.h"
#include "base/json/json.h"
#include "base/result.h"

namespace valora::adapters {

// null, a string or a list of strings; `as_list` is false for a string.
struct Names {
  std::vector<std::string> values;
  bool given = false;
  bool as_list = false;
};

// Error: kInvalidArgument naming the key.
Result<Names> read_names(const Json& config, const std::string& key);
// Reads use_dora, lora_bias, bias, ensure_weight_tying and trainable_token_indices.
Status read_whole_values(const Json& config, LoraConfig& lora);
// Reads alora_invocation_tokens. Call it last, because it conflicts with some other options.
Status read_invocation(const Json& config, LoraConfig& lora);
// Reads use_bdlora. Call it after read_whole_values().
Status read_block_diagonal(const Json& config, LoraConfig& lora);

}  // namespace valora::adapters
