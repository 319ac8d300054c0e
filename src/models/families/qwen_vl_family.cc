#include "models/families/qwen_vl_family.h"

namespace valora::models {

DecoderConfig read_qwen_vl_decoder(const ConfigReader& config) {
  const ConfigReader text = config.nested_or_self("text_config");
  DecoderConfig c = read_decoder_config(
      text, config,
      {.norm_eps = 1e-5, .rope_theta = 1e6, .qkv_bias = true, .windows = {Windows::kSwitched, 80}});
  if (c.rotary.sections.empty() && c.layers.front().head_dim == 128)
    c.rotary.sections = {16, 24, 24};
  if (c.rotary.sections.empty())
    text.refuse("\"mrope_section\" is missing from rope_scaling or rope_parameters");
  return c;
}

void name_qwen_vl_parts(const ConfigReader& config, ModelSpec& spec) {
  spec.image_token = static_cast<int32_t>(config.integer("image_token_id", 151655));
  spec.video_token = static_cast<int32_t>(config.integer("video_token_id", 151656));
  // "model." is also the prefix of a language model on its own.
  spec.aliases = {{"model.", kQwenVlLanguage},
                  {"visual.", kQwenVlVisual},
                  {"language_model.model.", kQwenVlLanguage}};
}

ModelSpec::FrameMarks read_frame_marks(const ConfigReader& config) {
  return {static_cast<int32_t>(config.integer("vision_start_token_id", 151652)),
          static_cast<int32_t>(config.integer("vision_end_token_id", 151653))};
}

}  // namespace valora::models
