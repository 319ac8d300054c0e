#include "models/spec/gguf_model.h"

#include "base/tensors/gguf_files.h"
#include "models/spec/gguf_config.h"
#include "models/spec/gguf_vision.h"

namespace valora::models {

Result<std::optional<GgufModel>> open_gguf_model(const ModelSource& source) {
  const auto path = find_gguf(source.path);
  if (!path) {
    if (source.mmproj.empty() || source.mmproj == "none") return std::optional<GgufModel>();
    return unprocessable("--mmproj is for models in GGUF files, and " + source.path + " is none",
                         "mmproj");
  }
  GgufModel model;
  VALORA_TRY(language, Gguf::open(*path));
  model.language = std::move(language);
  VALORA_TRY(mmproj, find_mmproj(*path, source.mmproj));
  if (!mmproj.empty()) {
    VALORA_TRY(vision, Gguf::open(mmproj));
    model.vision = std::move(vision);
  }
  return std::optional(std::move(model));
}

Result<Json> gguf_model_config(const GgufModel& model) {
  VALORA_TRY(text, gguf_config(*model.language));
  if (!model.vision) return text;
  return gguf_vision_config(model, std::move(text));
}

}  // namespace valora::models
