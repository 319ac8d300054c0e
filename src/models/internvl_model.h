// InternVL's model, which Hugging Face's format and the older code's folders have in common:
// InternViT tower over tiles, pixel shuffle, projector, decoder.
#pragma once

#include <memory>
#include <string>

#include "models/decoder_config.h"
#include "models/intern_vision.h"
#include "models/model.h"
#include "models/weights.h"

namespace valora::models {

struct InternVlConfig {
  DecoderConfig decoder;
  InternVisionConfig vision;
  int64_t depth = 0;        // layers of the tower that run
  bool normalised = true;   // whether its last norm follows
  int64_t merge = 2;        // merge² patches become one token
  bool transposed = false;  // the tokens of a tile are ordered by columns
  Activation projector_activation = Activation::kGelu;
  int64_t merged_width() const { return vision.width * merge * merge; }
};

// The names of a model's parts. language ends with a dot, as tower does.
struct InternVlNames {
  const char *architecture, *language, *head, *tower, *norm, *linear_1, *linear_2;
  const InternVisionNames* vision;
};

// "downsample_ratio": 1 / merge. Other values than powers of two have no exact meaning in the
// reference either.
int64_t read_merge(const ConfigReader& config);
// A hidden state of the tower by its index, negative from the end; -1: the last one, normalised.
void read_feature_layer(const ConfigReader& config, const std::string& key, InternVlConfig& c);
// Qwen2, Qwen3 or Llama.
DecoderConfig read_internvl_decoder(const ConfigReader& text, const ConfigReader& top);

// Without placeholders. aliases: of the family.
ModelSpec internvl_model_spec(const InternVlConfig& config, const InternVlNames& names,
                              std::vector<adapters::PrefixAlias> aliases);
std::unique_ptr<Model> make_internvl_model(ModelSpec spec, const InternVlConfig& config,
                                           const InternVlNames& names, Weights& weights,
                                           at::Device device);

// The text of a picture or a video (models::Family::media_text).
std::string internvl_media_text(const media::VisualInput& input);

}  // namespace valora::models
