// adapter_config.json: read in full, or refused by the name of the option that cannot be honoured.
#pragma once

#include <string>
#include <vector>

#include "adapters/target_rules.h"
#include "base/result.h"

namespace valora::adapters {

struct LoraConfig {
  TargetRules rules;
  std::vector<std::string> modules_to_save;
  std::vector<std::string> warnings;  // unknown keys
};

// Errors: kNotFound; kInvalidArgument, for broken JSON and wrong types; kUnprocessable, for options
// that change results and are not implemented (the message and param name the option).
Result<LoraConfig> read_lora_config(const std::string& path);

}  // namespace valora::adapters
