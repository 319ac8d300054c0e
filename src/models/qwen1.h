// Qwen's first models in the code that their folders bring along (QWenLMHeadModel): Qwen, and
// Qwen-VL with a "visual" part.
#pragma once

#include "models/spec/family.h"

namespace valora::models {

Family qwen1_family();
Family qwen1_vl_family();

}  // namespace valora::models
