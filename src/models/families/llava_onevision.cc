#include "models/families/families.h"

#include <charconv>

#include "models/families/causal_lm.h"
#include "models/families/llava_model.h"

namespace valora::models {
namespace {

constexpr char kLlavaOnevision[] = "LlavaOnevisionForConditionalGeneration";
constexpr int kMaxAspectTiles = 1 << 10;

// Parses "anyres_max_9" to 9.
int read_most_tiles(const ConfigReader& config) {
  constexpr std::string_view kBefore = "anyres_max_";
  const std::string ratio = config.text("vision_aspect_ratio", "anyres_max_9");
  int most = 0;
  if (ratio.starts_with(kBefore)) {
    const char* end = ratio.data() + ratio.size();
    const auto read = std::from_chars(ratio.data() + kBefore.size(), end, most);
    if (read.ec != std::errc() || read.ptr != end) most = 0;
  }
  if (most < 1 || most > kMaxAspectTiles)
    config.refuse("vision_aspect_ratio \"" + ratio +
                  "\" is not supported, only anyres_max_ and a number of tiles");
  return most;
}

LlavaConfig read_llava_onevision(const ConfigReader& config) {
  LlavaConfig c = read_llava_config(config, {.decoders = {"qwen2"},
                                             .towers = {"siglip_vision_model"},
                                             .feature_layer = -1,
                                             .strategy = "full"});
  c.newline = true;
  c.most_tiles = read_most_tiles(config);
  constexpr int kTile = 384, kMost = 6;
  for (int rows = 1; rows <= kMost; ++rows)
    for (int columns = 1; columns <= kMost; ++columns)
      c.default_pinpoints.push_back({columns * kTile, rows * kTile});
  read_pinpoints(config, c);
  return c;
}

ModelSpec llava_onevision_spec(const ConfigReader& config) {
  ModelSpec spec = llava_model_spec(read_llava_onevision(config), kLlavaOnevision);
  spec.image_token = llava_token(config, "image", 151646);
  spec.video_token = llava_token(config, "video", 151647);
  return spec;
}

}  // namespace

Family llava_onevision_family() {
  return {
      .architecture = kLlavaOnevision,
      .model_type = "llava_onevision",
      .spec = llava_onevision_spec,
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            return make_llava_model(llava_onevision_spec(config), read_llava_onevision(config),
                                    weights, device);
          },
      .positions = causal_lm_positions,
      .chat_format =
          [](const text::Tokenizer&, const ConfigReader&) {
            return text::make_chatml("You are a helpful assistant.",
                                     {.image = "<image>\n", .video = "<video>\n"});
          },
      .image_placeholder = "<image>",
      .video_placeholder = "<video>",
      .chat_adds_bos = true,
      .processor =
          [](const ConfigReader& config, const media::ProcessorFiles& files) {
            return llava_anyres_processor(read_llava_onevision(config), files);
          },
  };
}

}  // namespace valora::models
