// The configuration of the vision part (mmproj) of a GGUF model, as llama.cpp's converter writes
// it.
#pragma once

#include <string>

#include "base/json/json.h"
#include "base/result.h"
#include "models/spec/gguf_model.h"

namespace valora::models {

// The vision parts that are read, by clip.projector_type.
enum class GgufVisionKind : uint8_t {
  kQwen2Vl,
  kQwen25Vl,
  kQwen3Vl,
  kIdefics3,
  kGemma3,
  kLlava,
  kInternVl,
  kPixtral
};
// kUnprocessable, naming the projector, for other vision parts and for files that are none.
Result<GgufVisionKind> gguf_vision_kind(const Gguf& vision);

// The key of gguf_vision_config() for a token that the vocabulary of the file lacks, and which
// comes after all others.
inline constexpr char kAddedToken[] = "added_token";

// True if the feed-forward linears of the blocks are stored under each other's names, as older
// converters wrote them.
bool gguf_swaps_feed_forward(const Gguf& vision);

// The config.json of the whole model. text: gguf_config() of its language model. Settings that the
// file does not have are the published models'. kUnprocessable, naming the key, tensor or file, for
// a setting that is unknown, and for the vision part of another model.
Result<Json> gguf_vision_config(const GgufModel& model, Json text);

// The preprocessor_config.json. config: gguf_model_config(). Settings that the file does not have
// are the published models'.
Result<Json> gguf_image_processor(const GgufModel& model, const Json& config);
// The video_preprocessor_config.json; null: the settings of pictures hold.
Json gguf_video_processor(const Json& config, const Json& image);

}  // namespace valora::models
