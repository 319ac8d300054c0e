// LLaVA-OneVision (transformers: modeling_llava_onevision.py): a SigLIP tower over a picture's
// tiles or a video's frames, and a Qwen2 decoder.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family llava_onevision_family();

}  // namespace valora::models
