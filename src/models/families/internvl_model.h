// The model shared by InternVL's Hugging Face format and the older remote code: InternViT over
// tiles, pixel shuffle, projector, decoder.
#pragma once

#include <memory>
#include <string>

#include "models/decoder/decoder_config.h"
#include "models/model.h"
#include "models/towers/intern_vision.h"
#include "models/weights/weights.h"

namespace valora::models {

struct InternVlConfig {
  DecoderConfig decoder;
  InternVisionConfig vision;
  int64_t depth = 0;        // number of tower layers to run
  bool normalised = true;   // whether the tower's final norm is applied
  int64_t merge = 2;        // merge² patches become one token
  bool transposed = false;  // a tile's tokens are ordered by column
  Activation projector_activation = Activation::kGelu;
  int64_t merged_width() const { return vision.width * merge * merge; }
};

// The names of a model's parts. `language` and `tower` end in a dot.
struct InternVlNames {
  const char *architecture, *language, *head, *tower, *norm, *linear_1, *linear_2;
  const InternVisionNames* vision;
};

// "downsample_ratio": 1 / merge. Values other than powers of two are inexact in the reference, too.
int64_t read_merge(const ConfigReader& config);
// Reads the index of the tower's hidden state to use, negative from the end; -1: the last one,
// normalised.
void read_feature_layer(const ConfigReader& config, const std::string& key, InternVlConfig& c);
// A Qwen2, Qwen3 or Llama decoder.
DecoderConfig read_internvl_decoder(const ConfigReader& text, const ConfigReader& top);

// A spec without placeholders. aliases: the family's.
ModelSpec internvl_model_spec(const InternVlConfig& config, const InternVlNames& names,
                              std::vector<adapters::PrefixAlias> aliases);
std::unique_ptr<Model> make_internvl_model(ModelSpec spec, const InternVlConfig& config,
                                           const InternVlNames& names, Weights& weights,
                                           at::Device device);

// The text of a picture or a video (models::Family::media_text).
std::string internvl_media_text(const media::VisualInput& input);

}  // namespace valora::models
