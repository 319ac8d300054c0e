// What a family of models is, for those who prepare prompts and for those who load weights.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/json.h"
#include "media/processor.h"
#include "models/spec/config_reader.h"
#include "models/spec/model_spec.h"
#include "models/spec/positions.h"
#include "text/chat.h"
#include "text/tokenizer.h"

namespace c10 {
struct Device;  // at::Device: this header needs no torch
}

namespace valora::models {

class Model;
class Weights;

struct Family {
  std::string architecture;  // config.json's architectures[0]
  ModelSpec (*spec)(const ConfigReader& config);
  std::unique_ptr<Model> (*build)(const ConfigReader& config, Weights& weights, c10::Device device);
  // The positions of a prompt of `tokens` tokens; `visual` is ascending.
  Positions (*positions)(const ModelSpec& spec, int tokens, std::span<const VisualSpan> visual);
  // For folders without a chat template. May throw LoadError.
  std::unique_ptr<text::ChatFormat> (*chat_format)(const text::Tokenizer& tokenizer,
                                                   const ConfigReader& config);
  // Text that stands for an image or video in chat templates that take plain strings. If the spec
  // has kTokenByName, its first token is the placeholder.
  std::string image_placeholder, video_placeholder;
  // What a rendered conversation has in place of image_placeholder, with the spec's image_token
  // once; empty: image_placeholder is that token.
  std::string image_text{};
  // Why a request with a video is refused by a model without a video_token.
  std::string no_videos = "this model takes no videos";
  // The end-of-sequence token if no file of the folder names one; the default of the reference's
  // configuration class.
  std::optional<int32_t> default_eos{};
  // A token that ends an answer besides those that the folder's files name; empty: none.
  std::string end_of_turn{};
  // Whether a rendered conversation gets the tokenizer's BOS if it has none, as in the family's
  // reference processor.
  bool chat_adds_bos = false;
  // Makes the image processor; files.image is not null, unless settings_in_config. Null for
  // text-only families.
  Result<std::shared_ptr<const media::Processor>> (*processor)(
      const ConfigReader& config, const media::ProcessorFiles& files) = nullptr;
  // The image processor's settings are in config.json; the processors' files are not read.
  bool settings_in_config = false;
  // The text that stands for an image or video in a prompt: the placeholder once for each grid, or
  // each of VisualInput::token_rows, of which it stands for equally many rows, and what is around
  // them. An image's begins and ends with added tokens. Null: the rows alone.
  std::string (*media_text)(const media::VisualInput& input) = nullptr;
  // Special tokens are never recognised in the texts of conversations, as in the reference
  // (ChatPrompt::plain_texts).
  bool plain_texts = false;
  // A conversation with a video has the family's own chat format, whatever the folder's template
  // is, and no images.
  bool videos_alone = false;
  // Whether a configuration of this architecture is of this family; null: all that no family listed
  // before it takes.
  bool (*takes)(const ConfigReader& config) = nullptr;
};

}  // namespace valora::models
