// Idefics3 and SmolVLM: a SigLIP tower over a picture's tiles, a connector that merges adjacent
// patches, and a Llama decoder (transformers: modeling_idefics3.py, modeling_smolvlm.py).
#pragma once

#include "models/registry.h"

namespace valora::models {

Family idefics3_family();
Family smolvlm_family();

}  // namespace valora::models
