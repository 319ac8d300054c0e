// Quantisation configurations that older writers store in a separate file.
#pragma once

#include <string>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::models {

// Adds DIR/quantize_config.json (AutoGPTQ) or DIR/quant_config.json (AutoAWQ) to `config`, the
// object of config.json, as its "quantization_config", unless it already has one.
Status add_older_quantisation(const std::string& dir, Json& config);

}  // namespace valora::models
