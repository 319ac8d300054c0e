#include "models/families/families.h"

#include "models/decoder/decoder_config.h"
#include "models/families/qwen_vl_family.h"
#include "models/towers/qwen3_vl_vision.h"

namespace valora::models {
namespace {

DecoderConfig read_decoder(const ConfigReader& config, DecoderDefaults defaults) {
  const ConfigReader text = config.nested_or_self("text_config");
  defaults.max_positions = 128000;
  defaults.qk_norm = true;
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

DecoderConfig read_qwen3_vl_decoder(const ConfigReader& config) {
  return read_decoder(config, {.kv_heads = 32, .head_dim = 128});
}

DecoderConfig read_qwen3_vl_moe_decoder(const ConfigReader& config) {
  DecoderConfig c = read_decoder(config, {.kv_heads = 16});
  read_mixtures(config.nested_or_self("text_config"),
                {.experts = 60, .chosen = 4, .width = 1408, .always_normed = true}, c);
  return c;
}

class Qwen3VlMoeVisionTower : public Qwen3VlVisionTower {
 public:
  static constexpr char kArchitecture[] = "Qwen3VLMoeForConditionalGeneration";
  static constexpr char kModelType[] = "qwen3_vl_moe";
  using Qwen3VlVisionTower::Qwen3VlVisionTower;
};

template <typename Tower, DecoderReader* read>
Family family_with() {
  Family family = qwen_vl_family<Tower, read>();
  family.chat_format = [](const text::Tokenizer&, const ConfigReader&) {
    return text::make_chatml("");
  };
  family.processor = read_qwen3_vl_processor<Tower>;
  family.boxes = BoxNotation{.scale = 1000, .style = BoxStyle::kJson};
  return family;
}

}  // namespace

Family qwen3_vl_family() { return family_with<Qwen3VlVisionTower, read_qwen3_vl_decoder>(); }

Family qwen3_vl_moe_family() {
  return family_with<Qwen3VlMoeVisionTower, read_qwen3_vl_moe_decoder>();
}

}  // namespace valora::models
