// A model in GGUF files: its language model, and the vision part next to it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/json/json.h"
#include "base/result.h"
#include "base/tensors/gguf.h"

namespace valora::models {

// Where a model is read from.
struct ModelSource {
  ModelSource(std::string path, std::string mmproj = {})  // NOLINT(google-explicit-constructor)
      : path(std::move(path)), mmproj(std::move(mmproj)) {}
  ModelSource(const char* path) : path(path) {}  // NOLINT(google-explicit-constructor)

  std::string path;
  std::string mmproj;  // the vision part of a GGUF file: find_mmproj()
};

struct GgufModel {
  std::shared_ptr<const Gguf> language;
  std::shared_ptr<const Gguf> vision;  // null: the model takes text alone
};

// Absent if the path is not a GGUF file (find_gguf()). kUnprocessable for a vision part with a
// folder of another kind, and as Gguf::open() and find_mmproj().
Result<std::optional<GgufModel>> open_gguf_model(const ModelSource& source);

// The configuration, as the families read it: config.json of the original model. kUnprocessable as
// gguf_config() and gguf_vision_config().
Result<Json> gguf_model_config(const GgufModel& model);

}  // namespace valora::models
