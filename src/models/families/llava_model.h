// The model of LLaVA's families (transformers: modeling_llava.py, modeling_llava_next.py,
// modeling_llava_onevision.py, modeling_mistral3.py): a CLIP, SigLIP or Pixtral tower, a projector
// of two linears, and a decoder.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "media/processors/processor.h"
#include "models/decoder/decoder_config.h"
#include "models/spec/family.h"
#include "models/towers/clip_vision.h"
#include "models/towers/pixtral_vision.h"
#include "models/towers/siglip_vision.h"

namespace valora::models {

struct LlavaConfig {
  DecoderConfig decoder;
  std::variant<ClipVisionConfig, SiglipVisionConfig, PixtralVisionConfig> vision;
  // Hidden states that the projector reads, concatenated; 0: the embeddings.
  std::vector<int64_t> states;
  bool keeps_class = false;  // vision_feature_select_strategy "full"
  bool projector_bias = true;
  Activation projector_activation = Activation::kGelu;
  // LLaVA-NeXT: a learned embedding ends each row of a picture's tiles.
  bool newline = false;
  std::vector<media::PixelSize> pinpoints, default_pinpoints;
  int most_tiles = 0;  // see media::AnyresTarget
  // Mistral 3: a separate linear merges merge² normalised patches into one token.
  bool merges = false;
  int64_t merge = 1;

  const ClipTowerConfig& tower() const {
    return std::visit([](const auto& one) -> const ClipTowerConfig& { return one; }, vision);
  }
  bool has_class() const { return std::holds_alternative<ClipVisionConfig>(vision); }
};

// Defaults of a family's configuration class in transformers for missing keys, and the models it
// accepts.
struct LlavaDefaults {
  std::vector<const char*> decoders, towers;  // accepted "model_type"s; the first is the default
  int64_t feature_layer = -2;
  const char* strategy = "default";  // null: the class has none and keeps all features
  bool projector_bias = true;
};
// Reads the settings shared by all families. Throws LoadError.
LlavaConfig read_llava_config(const ConfigReader& config, const LlavaDefaults& defaults);
// Reads "image_grid_pinpoints"; keeps c.default_pinpoints if it is absent.
void read_pinpoints(const ConfigReader& config, LlavaConfig& c);

// Reads "image_token_index", or "image_token_id" as some releases write it.
int32_t llava_token(const ConfigReader& config, const std::string& kind, int64_t fallback);
// A spec without placeholders.
ModelSpec llava_model_spec(const LlavaConfig& config, const std::string& architecture);
std::unique_ptr<Model> make_llava_model(ModelSpec spec, const LlavaConfig& config, Weights& weights,
                                        at::Device device);
// The image processor for several resolutions.
Result<std::shared_ptr<const media::Processor>> llava_anyres_processor(
    const LlavaConfig& config, const media::ProcessorFiles& files);

// Turns the tokens of single tiles into the visual tokens of LLaVA-NeXT and LLaVA-OneVision
// (transformers: pack_image_features, apply_pooling).
// x: [grid_t * side², hidden], the tiles of a picture or video. newline: [hidden]. → [input.tokens,
// hidden]. For a picture: the whole picture, then the rows of its tiles without padding, each
// followed by a newline. For a video: the frames with rows and columns halved, and one newline.
// Throws c10::Error if the input's tiles fit neither.
at::Tensor with_newlines(const at::Tensor& x, const media::VisualInput& input, int64_t side,
                         const at::Tensor& newline);

}  // namespace valora::models
