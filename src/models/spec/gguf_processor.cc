// The settings of pictures of GGUF models: those in the file, else those of the published models.
#include <string>
#include <vector>

#include "models/spec/gguf_vision.h"

namespace valora::models {
namespace {

constexpr char kVisionKey[] = "clip.vision.";

// Qwen's bounds of pixels per picture.
Result<Json> qwen_pixels(const GgufMetadata& data, int64_t least, int64_t most) {
  VALORA_TRY(min, data.integer(std::string(kVisionKey) + "image_min_pixels", least));
  VALORA_TRY(max, data.integer(std::string(kVisionKey) + "image_max_pixels", most));
  return Json{{"shortest_edge", min}, {"longest_edge", max}};
}

Json square_of(int64_t side) { return {{"height", side}, {"width", side}}; }

}  // namespace

Result<Json> gguf_image_processor(const GgufModel& model, const Json& config) {
  const GgufMetadata& data = model.vision->metadata();
  VALORA_TRY(kind, gguf_vision_kind(*model.vision));
  Json settings = Json::object();
  for (const char* key : {"image_mean", "image_std"}) {
    VALORA_TRY(values, data.numbers(std::string(kVisionKey) + key));
    if (values.size() != 3) return data.wrong(std::string(kVisionKey) + key, "must be 3 numbers");
    settings[key] = values;
  }
  VALORA_TRY(image, data.integer(std::string(kVisionKey) + "image_size"));
  const Json& vision = config["vision_config"];
  switch (kind) {
    case GgufVisionKind::kQwen2Vl:
    case GgufVisionKind::kQwen25Vl:
    case GgufVisionKind::kQwen3Vl: {
      const bool third = kind == GgufVisionKind::kQwen3Vl;
      VALORA_TRY(size, qwen_pixels(data, third ? 65536 : 3136, third ? 16777216 : 12845056));
      settings["size"] = std::move(size);
      settings["patch_size"] = vision["patch_size"];
      settings["temporal_patch_size"] = vision["temporal_patch_size"];
      settings["merge_size"] = vision["spatial_merge_size"];
      break;
    }
    case GgufVisionKind::kIdefics3: {
      VALORA_TRY(longest, data.integer(std::string(kVisionKey) + "preproc_image_size", 4 * image));
      settings["size"] = {{"longest_edge", longest}};
      settings["max_image_size"] = {{"longest_edge", image}};
      break;
    }
    case GgufVisionKind::kGemma3: settings["size"] = square_of(image); break;
    case GgufVisionKind::kLlava:
      settings["size"] = {{"shortest_edge", image}};
      settings["crop_size"] = square_of(image);
      break;
    case GgufVisionKind::kInternVl: {
      VALORA_TRY(least, data.integer(std::string(kVisionKey) + "preproc_min_tiles", 1));
      VALORA_TRY(most, data.integer(std::string(kVisionKey) + "preproc_max_tiles", 12));
      settings["size"] = square_of(image);
      settings["min_patches"] = least;
      settings["max_patches"] = most;
      break;
    }
    case GgufVisionKind::kPixtral: settings["size"] = {{"longest_edge", image}}; break;
  }
  return settings;
}

Json gguf_video_processor(const Json& config, const Json& image) {
  if (config["model_type"] != "qwen3_vl") return nullptr;
  // The bounds of a whole video.
  Json settings = image;
  settings["size"] = {{"shortest_edge", 4096}, {"longest_edge", 25165824}};
  return settings;
}

}  // namespace valora::models
