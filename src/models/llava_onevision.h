// LLaVA-OneVision (transformers: modeling_llava_onevision.py): SigLIP tower over the tiles of a
// picture or the frames of a video, and a decoder of Qwen2.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family llava_onevision_family();

}  // namespace valora::models
