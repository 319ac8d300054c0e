// adapter_config.json. An option that cannot be honoured is refused by name.
#pragma once

#include <string>
#include <vector>

#include "adapters/target_rules.h"
#include "base/input_folder.h"
#include "base/result.h"

namespace valora::adapters {

struct LoraConfig {
  TargetRules rules;
  std::vector<std::string> modules_to_save;
  std::vector<std::string> warnings;  // unknown keys
};

// Errors: kNotFound; kInvalidArgument for broken JSON and wrong types; kUnprocessable for options
// that change results and are not implemented (message and param name the option).
Result<LoraConfig> read_lora_config(const InputFolder& folder);

}  // namespace valora::adapters
