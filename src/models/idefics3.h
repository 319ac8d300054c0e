// Idefics3 and SmolVLM: SigLIP tower over the tiles of a picture, connector that joins adjacent
// patches, Llama decoder (transformers: modeling_idefics3.py, modeling_smolvlm.py).
#pragma once

#include "models/registry.h"

namespace valora::models {

Family idefics3_family();
Family smolvlm_family();

}  // namespace valora::models
