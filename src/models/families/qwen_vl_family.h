// The parts that Qwen2-VL, Qwen2.5-VL and Qwen3-VL share apart from the vision tower: a decoder
// with M-RoPE positions (transformers: modeling_qwen2_vl.py, modeling_qwen2_5_vl.py,
// modeling_qwen3_vl.py).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/families/causal_lm.h"
#include "models/registry.h"
#include "models/spec/positions.h"

namespace valora::models {

// The prefixes since transformers 4.52.
inline constexpr char kQwenVlLanguage[] = "model.language_model.";
inline constexpr char kQwenVlVisual[] = "model.visual.";

// Reads the Qwen2 decoder from config.json or its text_config. Throws LoadError.
DecoderConfig read_qwen_vl_decoder(const ConfigReader& config);
// Sets the placeholder tokens, and adds the prefixes of older checkpoints as aliases.
void name_qwen_vl_parts(const ConfigReader& config, ModelSpec& spec);

using DecoderReader = DecoderConfig(const ConfigReader& config);

ModelSpec::FrameMarks read_frame_marks(const ConfigReader& config);

// Tower must have: kArchitecture and kModelType; kMarksFrames (ModelSpec::frame_marks); a Config
// with depth, out, merge, patch, temporal_patch, levels() (ModelSpec::visual_levels) and
// time_positions_per_second(); read_config(vision); add_modules(config, prefix, modules);
// begin(items, pieces).
template <typename Tower, DecoderReader* read_decoder>
ModelSpec qwen_vl_spec(const ConfigReader& config) {
  const DecoderConfig c = read_decoder(config);
  const auto vision = Tower::read_config(config.child("vision_config"));
  if (vision.out != c.hidden)
    config.refuse(
        "vision_config's hidden_size or out_hidden_size differs from the language model's "
        "hidden_size");
  ModelSpec spec = decoder_spec(c, Tower::kArchitecture);
  spec.visual_merge = static_cast<int>(vision.merge);
  spec.visual_levels = vision.levels();
  spec.time_positions_per_second = vision.time_positions_per_second();
  name_qwen_vl_parts(config, spec);
  if (Tower::kMarksFrames) spec.frame_marks = read_frame_marks(config);
  std::vector<adapters::Module> modules;
  add_decoder_modules(c, kQwenVlLanguage, modules);
  Tower::add_modules(vision, kQwenVlVisual, modules);
  modules.push_back(head_module(c, "lm_head"));
  spec.modules = adapters::ModuleTable(std::move(modules), spec.aliases, c.hidden);
  return spec;
}

// spec: the family's own, or qwen_vl_spec<Tower, read_decoder>(config).
template <typename Tower, DecoderReader* read_decoder>
std::unique_ptr<Model> make_qwen_vl_model(ModelSpec spec, const ConfigReader& config,
                                          Weights& weights, at::Device device) {
  auto tower = std::make_unique<Tower>(weights, spec.modules, kQwenVlVisual,
                                       Tower::read_config(config.child("vision_config")), device);
  return make_vision_language_model(std::move(spec), std::move(tower), read_decoder(config),
                                    kQwenVlLanguage, "lm_head", weights, device);
}

template <typename Tower, DecoderReader* read_decoder = read_qwen_vl_decoder>
Family qwen_vl_family() {
  return {
      .architecture = Tower::kArchitecture,
      .model_type = Tower::kModelType,
      .spec = qwen_vl_spec<Tower, read_decoder>,
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            return make_qwen_vl_model<Tower, read_decoder>(
                qwen_vl_spec<Tower, read_decoder>(config), config, weights, device);
          },
      .positions = mrope_positions,
      .chat_format = [](const text::Tokenizer&,
                        const ConfigReader&) { return text::make_chatml(); },
      .image_placeholder = "<|vision_start|><|image_pad|><|vision_end|>",
      .video_placeholder = "<|vision_start|><|video_pad|><|vision_end|>",
      .processor =
          [](const ConfigReader& config, const media::ProcessorFiles& files) {
            const auto vision = Tower::read_config(config.child("vision_config"));
            return media::make_qwen2_vl_processor(
                files.image, files.video,
                {static_cast<int>(vision.patch), static_cast<int>(vision.temporal_patch),
                 static_cast<int>(vision.merge)});
          },
  };
}

}  // namespace valora::models
