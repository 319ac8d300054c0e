// The description of a model family, for preparing prompts and for loading weights.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/box_notation.h"
#include "base/json/json.h"
#include "media/processors/processor.h"
#include "models/spec/config_reader.h"
#include "models/spec/model_spec.h"
#include "models/spec/positions.h"
#include "text/chat/chat.h"
#include "text/tokenizer.h"

namespace c10 {
struct Device;  // at::Device: this header needs no torch
}

namespace valora::models {

class Model;
class Weights;

struct Family {
  std::string architecture;  // config.json's architectures[0]
  std::string model_type;    // config.json's model_type; counts where there are no architectures
  ModelSpec (*spec)(const ConfigReader& config);
  std::unique_ptr<Model> (*build)(const ConfigReader& config, Weights& weights, c10::Device device);
  // The positions of a prompt of `tokens` tokens; `visual` is in ascending order.
  Positions (*positions)(const ModelSpec& spec, int tokens, std::span<const VisualSpan> visual);
  // For folders without a chat template. May throw LoadError.
  std::unique_ptr<text::ChatFormat> (*chat_format)(const text::Tokenizer& tokenizer,
                                                   const ConfigReader& config);
  // Text that represents an image or video in chat templates that take plain strings. If the spec
  // has kTokenByName, its first token is the placeholder.
  std::string image_placeholder, video_placeholder;
  // Replaces image_placeholder in a rendered conversation and contains the spec's image_token once;
  // empty: image_placeholder is that token.
  std::string image_text{};
  // The reason given when a model without a video_token refuses a request with a video.
  std::string no_videos = "this model does not support videos";
  // The end-of-sequence token if no file of the folder names one: the default of the reference's
  // configuration class.
  std::optional<int32_t> default_eos{};
  // A token that ends an answer, in addition to those in the folder's files; empty: none.
  std::string end_of_turn{};
  // Add the tokenizer's BOS to a rendered conversation that lacks it, as the family's reference
  // processor does.
  bool chat_adds_bos = false;
  // Creates the image processor; files.image is non-null unless settings_in_config is set. Null for
  // text-only families.
  Result<std::shared_ptr<const media::Processor>> (*processor)(
      const ConfigReader& config, const media::ProcessorFiles& files) = nullptr;
  // The image processor's settings are in config.json; the processor files are not read.
  bool settings_in_config = false;
  // The text of an image or video in a prompt, with everything around the placeholders: one
  // placeholder per grid, or one per entry of VisualInput::token_rows, each for an equal number of
  // rows. An image's text begins and ends with added tokens. Null: the placeholders alone.
  std::string (*media_text)(const media::VisualInput& input) = nullptr;
  // How its models were trained to write boxes; absent: they were not.
  std::optional<BoxNotation> boxes{};
  // Special tokens in the text of conversations are never recognised, as in the reference
  // (ChatPrompt::plain_texts).
  bool plain_texts = false;
  // A conversation with a video uses the family's own chat format even if the folder has a
  // template, and cannot contain images.
  bool excludes_mixed_media = false;
  // Whether this family takes a configuration of its architecture; null: all configurations that no
  // earlier family takes.
  bool (*takes)(const ConfigReader& config) = nullptr;
};

}  // namespace valora::models
