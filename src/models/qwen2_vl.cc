#include "models/qwen2_vl.h"

#include <algorithm>

#include "models/decoder.h"
#include "models/qwen2_vl_vision.h"

namespace valora::models {
namespace {

constexpr char kLanguage[] = "model.language_model.";
constexpr char kVisual[] = "model.visual.";

DecoderConfig decoder_config(const ConfigReader& config) {
  const ConfigReader text = config.nested_or_self("text_config");
  DecoderConfig c = read_decoder_config(text, config);
  if (!text.has("rms_norm_eps")) c.norm_eps = 1e-5;
  c.rotary = read_rotary(text, c.head_dim, 1e6);
  if (c.rotary.sections.empty()) text.refuse("\"mrope_section\" is missing from rope_scaling or rope_parameters");
  return c;
}

ModelSpec qwen2_vl_spec(const ConfigReader& config) {
  const DecoderConfig c = decoder_config(config);
  const Qwen2VlVisionConfig vision = read_qwen2_vl_vision_config(config.child("vision_config"));
  if (vision.out != c.hidden) config.refuse("vision_config's hidden_size differs from the language model's");
  ModelSpec spec;
  spec.architecture = "Qwen2VLForConditionalGeneration";
  spec.vocab = c.vocab;
  spec.hidden = c.hidden;
  spec.layers = c.layers;
  spec.kv_heads = c.kv_heads;
  spec.head_dim = c.head_dim;
  spec.max_positions = c.max_positions;
  spec.axes = 3;
  spec.visual_merge = static_cast<int>(vision.merge);
  spec.image_token = static_cast<int32_t>(config.integer("image_token_id", 151655));
  spec.video_token = static_cast<int32_t>(config.integer("video_token_id", 151656));
  // Names as transformers 4.52 and later have them; older and hub checkpoints use the aliases.
  spec.aliases = {{"model.", kLanguage}, {"visual.", kVisual}, {"language_model.model.", kLanguage}};
  std::vector<adapters::Module> modules;
  add_decoder_modules(c, kLanguage, modules);
  add_qwen2_vl_vision_modules(vision, kVisual, modules);
  modules.push_back({"lm_head", c.hidden, c.vocab, false, -1});
  spec.modules = adapters::ModuleTable(std::move(modules), spec.aliases, c.hidden);
  return spec;
}

class Qwen2VLForConditionalGeneration final : public Model {
 public:
  Qwen2VLForConditionalGeneration(const ConfigReader& config, Weights& weights, at::Device device)
      : Model(qwen2_vl_spec(config)),
        visual_(weights, kVisual, read_qwen2_vl_vision_config(config.child("vision_config")), device),
        language_model_(weights, kLanguage, "lm_head", decoder_config(config), 0, device) {}

  at::Tensor forward(const Batch& batch) const override { return language_model_.forward(batch); }
  at::Tensor logits(const at::Tensor& hidden) const override { return language_model_.logits(hidden); }
  at::Tensor encode(const media::VisualInput& input) const override { return visual_(input); }

 private:
  Qwen2VlVisionTower visual_;
  Decoder language_model_;
};

// M-RoPE (transformers: Qwen2VLModel.get_rope_index): text advances all three axes together; a visual
// input spreads over (t, h, w) from where it begins, and what follows starts behind its largest extent.
Positions mrope_positions(const ModelSpec& spec, int tokens, std::span<const VisualSpan> visual) {
  Positions positions;
  positions.prompt.resize(static_cast<size_t>(tokens) * 3);
  int32_t* axis[3] = {positions.prompt.data(), positions.prompt.data() + tokens, positions.prompt.data() + 2 * tokens};
  int token = 0, next = 0;
  const auto text_until = [&](int end) {
    for (; token < end; ++token, ++next) axis[0][token] = axis[1][token] = axis[2][token] = next;
  };
  for (const VisualSpan& span : visual) {
    text_until(span.token_begin);
    const media::VisualInput& in = *span.input;
    const int h = in.grid_h / spec.visual_merge, w = in.grid_w / spec.visual_merge;
    for (int t = 0; t < in.grid_t; ++t)
      for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x, ++token) axis[0][token] = next + t, axis[1][token] = next + y, axis[2][token] = next + x;
    next += std::max({in.grid_t, h, w});
  }
  text_until(tokens);
  positions.delta = next - tokens;
  return positions;
}

}  // namespace

Family qwen2_vl_family() {
  return {
      .architecture = "Qwen2VLForConditionalGeneration",
      .spec = qwen2_vl_spec,
      .build = [](const ConfigReader& config, Weights& weights, at::Device device) -> std::unique_ptr<Model> {
        return std::make_unique<Qwen2VLForConditionalGeneration>(config, weights, device);
      },
      .positions = mrope_positions,
      .chat_format = [] { return text::make_chatml(); },
      .processor = media::make_qwen2_vl_processor,
  };
}

}  // namespace valora::models
