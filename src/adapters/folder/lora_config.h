// Reads adapter_config.json. An option that cannot be honoured is refused by name.
#pragma once

#include <string>
#include <vector>

#include "adapters/targets/target_rules.h"
#include "base/files/input_folder.h"
#include "base/json/json.h"
#include "base/result.h"

namespace valora::adapters {

// trainable_token_indices: the ids of one module's rows, in the order of the file's rows.
struct TokenIds {
  std::string module;  // full name or suffix; empty: the embedding
  std::vector<int64_t> ids;
};

struct LoraConfig {
  TargetRules rules;
  std::vector<std::string> modules_to_save;
  std::vector<TokenIds> token_ids;
  // alora_invocation_tokens: the adapter applies from their last occurrence in a prompt on. Empty:
  // always.
  std::vector<int32_t> invocation;
  bool dora = false;            // each linear has a magnitude
  bool lora_bias = false;       // each lora_B has a bias
  bool trained_biases = false;  // bias: the file has trained biases, which replace the base model's
  // With tied embeddings, a saved embedding also serves as the output layer.
  bool ensure_weight_tying = false;
  std::vector<std::string> warnings;  // unknown keys
};

// Errors: kNotFound; kInvalidArgument for broken JSON and wrong types; kUnprocessable for options
// that change results and are not implemented (message and param name the option).
Result<LoraConfig> read_lora_config(const InputFolder& folder);
// The same for the contents of an adapter_config.json.
Result<LoraConfig> lora_config_of(const Json& config);

}  // namespace valora::adapters
