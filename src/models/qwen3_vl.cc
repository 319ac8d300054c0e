#include "models/qwen3_vl.h"

#include "models/qwen3_vl_vision.h"
#include "models/qwen_vl_family.h"

namespace valora::models {
namespace {

DecoderConfig read_qwen3_vl_decoder(const ConfigReader& config) {
  const ConfigReader text = config.nested_or_self("text_config");
  DecoderDefaults defaults{
      .kv_heads = 32, .head_dim = 128, .max_positions = 128000, .qk_norm = true};
  defaults.qkv_bias = defaults.o_bias = text.flag("attention_bias", false);
  DecoderConfig c = read_decoder_config(text, config, defaults);
  // Releases of transformers disagree on the default, so it must be explicit.
  const auto has_theta = [](const ConfigReader& rope) { return rope.has("rope_theta"); };
  if (!has_theta(text) && !has_theta(text.nested_or_self("rope_scaling")) &&
      !has_theta(text.nested_or_self("rope_parameters")))
    text.refuse("\"rope_theta\" is missing");
  // transformers ignores "mrope_interleaved".
  c.rotary.interleaved = true;
  if (c.rotary.sections.empty() && c.layers.front().head_dim == 128)
    c.rotary.sections = {24, 20, 20};
  if (c.rotary.sections.empty())
    text.refuse("\"mrope_section\" is missing from rope_scaling or rope_parameters");
  return c;
}

}  // namespace

Family qwen3_vl_family() {
  Family family = qwen_vl_family<Qwen3VlVisionTower, read_qwen3_vl_decoder>();
  family.chat_format = [](const text::Tokenizer&, const ConfigReader&) {
    return text::make_chatml("");
  };
  family.processor = read_qwen3_vl_processor<Qwen3VlVisionTower>;
  return family;
}

}  // namespace valora::models
