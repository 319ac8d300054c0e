// Settings of generation_config.json that are not applied.
#pragma once

#include <string>

#include "base/json.h"

namespace valora::serving {

// The settings that change the answers of transformers' generate() and are not applied here, each
// with its value; empty if there is none.
std::string unserved_settings(const Json& json);

}  // namespace valora::serving
