// Qwen3.5, with and without a vision tower, with MLPs and with mixtures of experts (transformers:
// Qwen3_5ForConditionalGeneration, Qwen3_5ForCausalLM, Qwen3_5MoeForConditionalGeneration,
// Qwen3_5MoeForCausalLM): most layers have gated delta rules instead of attention.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family qwen3_5_family();
Family qwen3_5_text_family();
Family qwen3_5_moe_family();
Family qwen3_5_moe_text_family();

}  // namespace valora::models
