#include "models/families/families.h"

#include <array>

#include "models/families/causal_lm.h"
#include "models/families/internvl_model.h"
#include "text/chat/chat_formats.h"

namespace valora::models {
namespace {

constexpr InternVlNames kInternVlChat{.architecture = "InternVLChatModel",
                                      .language = "language_model.model.",
                                      .head = "language_model.lm_head",
                                      .tower = "vision_model.",
                                      .norm = "mlp1.0",
                                      .linear_1 = "mlp1.1",
                                      .linear_2 = "mlp1.3",
                                      .vision = &kInternVitNames};
constexpr char kPlaceholder[] = "<IMG_CONTEXT>\n";

// Refuses checkpoints that still hold unmerged adapters from the remote code's own training.
void refuse_own_adapters(const ConfigReader& config) {
  for (const char* key : {"use_backbone_lora", "use_llm_lora"})
    if (config.has(key) && config.json().at(key) != 0 && config.json().at(key) != false)
      config.refuse("\"" + std::string(key) +
                    "\": the weights hold adapters of their own; merge them first");
}

bool is_internlm2(const ConfigReader& config) {
  return config.child("llm_config").text("model_type", "qwen2") == "internlm2";
}

InternVlNames chat_names(const ConfigReader& config) {
  InternVlNames names = kInternVlChat;
  if (is_internlm2(config)) names.head = "language_model.output";
  return names;
}

InternVlConfig read_internvl_chat_config(const ConfigReader& config) {
  refuse_own_adapters(config);
  if (config.flag("pad2square", false)) config.refuse("\"pad2square\" is not supported");
  const ConfigReader text = config.child("llm_config");
  InternVlConfig c;
  c.decoder = is_internlm2(config) ? read_internlm2_config(text, config)
                                   : read_internvl_decoder(text, config);
  c.vision = read_intern_vit_config(config.child("vision_config"));
  c.merge = read_merge(config);
  read_feature_layer(config, "select_layer", c);
  const std::string shuffle = config.text("ps_version", "v1");
  if (shuffle != "v1" && shuffle != "v2")
    config.refuse("ps_version \"" + shuffle + "\" is not supported");
  c.transposed = shuffle == "v1";
  return c;
}

ModelSpec internvl_chat_spec(const ConfigReader& config) {
  const InternVlNames names = chat_names(config);
  const char* const head = is_internlm2(config) ? "output" : "lm_head";
  ModelSpec spec = internvl_model_spec(read_internvl_chat_config(config), names,
                                       {{"model.", names.language},  // the decoder alone
                                        {head, names.head}});
  spec.image_token = spec.video_token = kTokenByName;
  return spec;
}

Result<std::shared_ptr<const media::Processor>> internvl_chat_processor(
    const ConfigReader& config, const media::ProcessorFiles&) {
  const InternVlConfig c = read_internvl_chat_config(config);
  media::CanvasSettings settings;
  settings.tile =
      static_cast<int>(config.at_most("force_image_size", media::kMaxCanvasTile, c.vision.image));
  settings.least = static_cast<int>(config.at_most("min_dynamic_patch", media::kMaxCanvasTiles, 1));
  settings.most = static_cast<int>(config.at_most("max_dynamic_patch", media::kMaxCanvasTiles, 6));
  if (!config.flag("dynamic_image_size", false)) settings.least = settings.most = 1;
  settings.adds_thumbnail = config.flag("use_thumbnail", false);
  settings.values.mean = {0.485, 0.456, 0.406};
  settings.values.std = {0.229, 0.224, 0.225};
  return media::make_canvas_processor(settings,
                                      {static_cast<int>(c.vision.patch), static_cast<int>(c.merge)},
                                      media::CanvasVideos{settings.values, {}});
}

// The conversation formats that the remote code's "template" names, with the system prompts the
// models were trained with.
std::unique_ptr<text::ChatFormat> internvl_chat_format(const text::Tokenizer&,
                                                       const ConfigReader& config) {
  constexpr char kFirst[] =
      "你是由上海人工智能实验室联合商汤科技开发的书生多模态大模型，英文名叫InternVL, "
      "是一个有用无害的人工智能助手。";
  constexpr char kSince2_5[] =
      "你是书生·万象，英文名是InternVL，是由上海人工智能实验室、清华大学及多家合作单位联合开发的多"
      "模"
      "态大语言模型。";
  const std::string name = config.text("template", "");
  if (name == "internvl2_5")
    return text::make_chatml(kSince2_5, {kPlaceholder, kPlaceholder, "<|im_end|>\n"});
  if (name == "Hermes-2" || name == "internlm2-chat")
    return text::make_chatml(kFirst, {kPlaceholder, kPlaceholder, "<|im_end|>"});
  config.refuse("the conversation format \"" + name +
                "\" (\"template\") is not supported; give a chat template by --chat-template");
}

}  // namespace

Family internvl_chat_family() {
  return {
      .architecture = kInternVlChat.architecture,
      .model_type = "internvl_chat",
      .spec = internvl_chat_spec,
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            return make_internvl_model(internvl_chat_spec(config),
                                       read_internvl_chat_config(config), chat_names(config),
                                       weights, device);
          },
      .positions = causal_lm_positions,
      .chat_format = internvl_chat_format,
      .image_placeholder = kPlaceholder,
      .video_placeholder = kPlaceholder,
      .end_of_turn = "<|im_end|>",
      .chat_adds_bos = true,
      .processor = internvl_chat_processor,
      .settings_in_config = true,
      .media_text = internvl_media_text,
      .boxes = BoxNotation{.scale = 1000, .style = BoxStyle::kMarks},
  };
}

}  // namespace valora::models
