#include "models/families/families.h"

#include "models/families/causal_lm.h"
#include "models/families/internvl_model.h"
#include "text/chat/chat_formats.h"

namespace valora::models {
namespace {

constexpr InternVlNames kInternVl{.architecture = "InternVLForConditionalGeneration",
                                  .language = "model.language_model.",
                                  .head = "lm_head",
                                  .tower = "model.vision_tower.",
                                  .norm = "model.multi_modal_projector.layer_norm",
                                  .linear_1 = "model.multi_modal_projector.linear_1",
                                  .linear_2 = "model.multi_modal_projector.linear_2",
                                  .vision = &kInternVisionNames};

InternVlConfig read_internvl_config(const ConfigReader& config) {
  InternVlConfig c;
  c.decoder = read_internvl_decoder(config.child("text_config"), config);
  c.vision = read_intern_vision_config(config.child("vision_config"));
  c.merge = read_merge(config);
  read_feature_layer(config, "vision_feature_layer", c);
  if (const std::string strategy = config.text("vision_feature_select_strategy", "default");
      strategy != "default")
    config.refuse("vision_feature_select_strategy \"" + strategy +
                  "\" is not supported, only default: with the class token, tiles are not square");
  c.projector_activation = read_activation(config, "projector_hidden_act", "gelu");
  return c;
}

ModelSpec internvl_spec(const ConfigReader& config) {
  // Tensors lack "model."; the last entry is the language model alone.
  ModelSpec spec = internvl_model_spec(read_internvl_config(config), kInternVl,
                                       {{"language_model.model.", kInternVl.language},
                                        {"language_model.lm_head", "lm_head"},
                                        {"vision_tower.", kInternVl.tower},
                                        {"multi_modal_projector.", "model.multi_modal_projector."},
                                        {"model.", kInternVl.language}});
  spec.image_token = static_cast<int32_t>(config.integer("image_token_id", 151667));
  spec.video_token = kTokenByName;
  return spec;
}

Result<std::shared_ptr<const media::Processor>> internvl_processor(
    const ConfigReader& config, const media::ProcessorFiles& files) {
  const InternVlConfig c = read_internvl_config(config);
  return media::make_canvas_processor(
      files, {static_cast<int>(c.vision.patch), static_cast<int>(c.merge)});
}

}  // namespace

Family internvl_family() {
  return {
      .architecture = kInternVl.architecture,
      .model_type = "internvl",
      .spec = internvl_spec,
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            return make_internvl_model(internvl_spec(config), read_internvl_config(config),
                                       kInternVl, weights, device);
          },
      .positions = causal_lm_positions,
      .chat_format =
          [](const text::Tokenizer& tokenizer, const ConfigReader&) {
            const bool own = tokenizer.token_to_id("<video>").has_value();
            return text::make_chatml("",
                                     {"<IMG_CONTEXT>\n", own ? "<video>\n" : "<IMG_CONTEXT>\n"});
          },
      .image_placeholder = "<IMG_CONTEXT>",
      .video_placeholder = "<video>",
      .chat_adds_bos = true,
      .processor = internvl_processor,
      .media_text = internvl_media_text,
      .boxes = BoxNotation{.scale = 1000, .style = BoxStyle::kMarks},
  };
}

}  // namespace valora::models
