// What Qwen2-VL and Qwen2.5-VL have in common around their vision towers.
#pragma once

#include "models/decoder.h"
#include "models/mrope.h"

namespace valora::models {

// Names as transformers 4.52 and later have them.
inline constexpr char kQwenVlLanguage[] = "model.language_model.";
inline constexpr char kQwenVlVisual[] = "model.visual.";
inline constexpr char kQwenVlImage[] = "<|vision_start|><|image_pad|><|vision_end|>";
inline constexpr char kQwenVlVideo[] = "<|vision_start|><|video_pad|><|vision_end|>";

// A Qwen2 decoder with M-RoPE, from config.json or its text_config.
DecoderConfig read_qwen_vl_decoder(const ConfigReader& config);
// Placeholder tokens, and the names that older and hub checkpoints use.
void name_qwen_vl_parts(const ConfigReader& config, ModelSpec& spec);

}  // namespace valora::models
