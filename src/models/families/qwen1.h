// The first Qwen models, as in their folders' remote code (QWenLMHeadModel): Qwen, and Qwen-VL if
// config.json has a "visual" part.
#pragma once

#include "models/spec/family.h"

namespace valora::models {

Family qwen1_family();
Family qwen1_vl_family();

}  // namespace valora::models
