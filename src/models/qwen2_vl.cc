#include "models/qwen2_vl.h"

#include "models/qwen2_vl_vision.h"
#include "models/qwen_vl_common.h"

namespace valora::models {
namespace {

ModelSpec qwen2_vl_spec(const ConfigReader& config) {
  const DecoderConfig c = read_qwen_vl_decoder(config);
  const Qwen2VlVisionConfig vision = read_qwen2_vl_vision_config(config.child("vision_config"));
  if (vision.out != c.hidden) config.refuse("vision_config's hidden_size differs from the language model's");
  ModelSpec spec = decoder_spec(c, "Qwen2VLForConditionalGeneration");
  spec.visual_merge = static_cast<int>(vision.merge);
  name_qwen_vl_parts(config, spec);
  std::vector<adapters::Module> modules;
  add_decoder_modules(c, kQwenVlLanguage, modules);
  add_qwen2_vl_vision_modules(vision, kQwenVlVisual, modules);
  modules.push_back({"lm_head", c.hidden, c.vocab, false, -1});
  spec.modules = adapters::ModuleTable(std::move(modules), spec.aliases, c.hidden);
  return spec;
}

class Qwen2VLForConditionalGeneration final : public Model {
 public:
  Qwen2VLForConditionalGeneration(const ConfigReader& config, Weights& weights, at::Device device)
      : Model(qwen2_vl_spec(config)),
        visual_(weights, kQwenVlVisual, read_qwen2_vl_vision_config(config.child("vision_config")),
                spec().modules.find(std::string(kQwenVlVisual) + "blocks.0.attn.qkv").value(), device),
        language_model_(weights, kQwenVlLanguage, "lm_head", read_qwen_vl_decoder(config), 0, device) {}

  at::Tensor forward(const Batch& batch) const override { return language_model_.forward(batch); }
  at::Tensor logits(const at::Tensor& hidden) const override { return language_model_.logits(hidden); }
  std::vector<at::Tensor> encode(std::span<const VisualItem> items) const override { return visual_(items); }

 private:
  Qwen2VlVisionTower visual_;
  Decoder language_model_;
};

Result<std::shared_ptr<const media::Processor>> qwen2_vl_processor(const ConfigReader& config, const Json& image, const Json& video) {
  const Qwen2VlVisionConfig vision = read_qwen2_vl_vision_config(config.child("vision_config"));
  return media::make_qwen2_vl_processor(image, video, {static_cast<int>(vision.patch), static_cast<int>(vision.temporal_patch),
                                                       static_cast<int>(vision.merge)});
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
      .chat_format = [](const text::Tokenizer&) { return text::make_chatml(); },
      .image_placeholder = kQwenVlImage,
      .video_placeholder = kQwenVlVideo,
      .processor = qwen2_vl_processor,
  };
}

}  // namespace valora::models
