// Mistral 3 (transformers: modeling_mistral3.py), and Pixtral, which is LLaVA with Pixtral's tower:
// pictures of any size, whose rows are separated in the prompt, and a Mistral decoder.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family mistral3_family();
Family pixtral_family();

}  // namespace valora::models
