// All families of models: one function per `Family`, and the readers of decoders that families with
// pictures share. Readers take `text` (config.json or its text_config) and `top` (the whole file);
// missing keys get the defaults of the family's configuration class; they throw LoadError.
#pragma once

#include "models/decoder/decoder_config.h"
#include "models/registry.h"

namespace valora::models {

// Llama 2 and 3, text (transformers: modeling_llama.py).
inline constexpr int32_t kLlamaEos = 2;  // LlamaConfig's default

DecoderConfig read_llama_config(const ConfigReader& text, const ConfigReader& top);
Family llama_family();

// Qwen2 (transformers: modeling_qwen2.py), text only.
DecoderConfig read_qwen2_config(const ConfigReader& text, const ConfigReader& top);
Family qwen2_family();

// Qwen3 (transformers: modeling_qwen3.py), text only.
DecoderConfig read_qwen3_config(const ConfigReader& text, const ConfigReader& top);
Family qwen3_family();

// Qwen3 with mixtures of experts (transformers: modeling_qwen3_moe.py), text only.
Family qwen3_moe_family();

// Mistral (transformers: modeling_mistral.py), text only.
DecoderConfig read_mistral_config(const ConfigReader& text, const ConfigReader& top);
// The published chat format that matches the tokenizer's vocabulary. image: the text of the image
// placeholder.
std::unique_ptr<text::ChatFormat> mistral_chat(const text::Tokenizer& tokenizer,
                                               const std::string& image);
Family mistral_family();

// InternLM2, the decoder of older InternVL models (modeling_internlm2.py in their folders' remote
// code): Llama with one linear for queries, keys and values.
DecoderConfig read_internlm2_config(const ConfigReader& text, const ConfigReader& top);

// Gemma 3 (transformers: modeling_gemma3.py), with and without pictures.
DecoderConfig read_gemma3_config(const ConfigReader& text, const ConfigReader& top);

inline constexpr int32_t kGemmaEos = 1;

Family gemma3_text_family();
Family gemma3_family();

// The first Qwen models, as in their folders' remote code (QWenLMHeadModel): Qwen, and Qwen-VL if
// config.json has a "visual" part.
Family qwen1_family();
Family qwen1_vl_family();

// Qwen2-VL (transformers: modeling_qwen2_vl.py): a vision tower for images of any resolution whose
// patches are merged 2×2 into tokens of a Qwen2 decoder with M-RoPE positions.
Family qwen2_vl_family();

// Qwen2.5-VL (transformers: modeling_qwen2_5_vl.py): Qwen2-VL with window attention in the vision
// tower and temporal positions in units of time.
Family qwen2_5_vl_family();

// Qwen3-VL, also with mixtures of experts (transformers: modeling_qwen3_vl.py,
// modeling_qwen3_vl_moe.py): a Qwen3 decoder with interleaved M-RoPE, whose
// first layers' outputs receive embeddings from several depths of the vision tower; in the prompt,
// each frame of a video follows its timestamp.
Family qwen3_vl_family();
Family qwen3_vl_moe_family();

// Qwen3.5, with and without a vision tower, with MLPs and with mixtures of experts (transformers:
// Qwen3_5ForConditionalGeneration, Qwen3_5ForCausalLM, Qwen3_5MoeForConditionalGeneration,
// Qwen3_5MoeForCausalLM): most layers have gated delta rules instead of attention.
Family qwen3_5_family();
Family qwen3_5_text_family();
Family qwen3_5_moe_family();
Family qwen3_5_moe_text_family();

// LLaVA-1.5: CLIP tower, two-layer projector, Llama decoder (transformers: modeling_llava.py).
Family llava_family();

// LLaVA-NeXT (transformers: modeling_llava_next.py): LLaVA over a picture's tiles, with a Llama,
// Mistral or Qwen2 decoder.
Family llava_next_family();

// LLaVA-OneVision (transformers: modeling_llava_onevision.py): a SigLIP tower over a picture's
// tiles or a video's frames, and a Qwen2 decoder.
Family llava_onevision_family();

// Mistral 3 (transformers: modeling_mistral3.py), and Pixtral, which is LLaVA with Pixtral's tower:
// pictures of any size, whose rows are separated in the prompt, and a Mistral decoder.
Family mistral3_family();
Family pixtral_family();

// Idefics3 and SmolVLM: a SigLIP tower over a picture's tiles, a connector that merges adjacent
// patches, and a Llama decoder (transformers: modeling_idefics3.py, modeling_smolvlm.py).
Family idefics3_family();
Family smolvlm_family();

// InternVL in Hugging Face's format (transformers: modeling_internvl.py): InternViT over a
// picture's tiles, pixel shuffle, a projector, and a Qwen2, Qwen3 or Llama decoder.
Family internvl_family();

// InternVL in folders with remote code (InternVLChatModel): the model of internvl.h under older
// names, with the picture settings in config.json.
Family internvl_chat_family();

}  // namespace valora::models
