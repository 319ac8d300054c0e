// Settings of generation_config.json that are not applied.
#pragma once

#include <string>

#include "base/json/json.h"

namespace valora::serving {

// Lists the settings, with their values, that change the answers of transformers' generate() but
// are not applied here; empty if there are none.
std::string unserved_settings(const Json& json);

}  // namespace valora::serving
