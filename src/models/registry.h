// The model families by their architecture name. Adding one: its file, and a line in registry.cc.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "media/processor.h"
#include "models/model.h"
#include "text/chat.h"
#include "text/tokenizer.h"

namespace valora::models {

struct Family {
  std::string architecture;  // config.json's architectures[0]
  ModelSpec (*spec)(const ConfigReader& config);
  std::unique_ptr<Model> (*build)(const ConfigReader& config, Weights& weights, at::Device device);
  // The positions of a prompt with its visual inputs, spans ascending.
  Positions (*positions)(const ModelSpec& spec, int tokens, std::span<const VisualSpan> visual);
  // Of folders that bring no chat template.
  std::unique_ptr<text::ChatFormat> (*chat_format)(const text::Tokenizer& tokenizer);
  // What a template that takes plain strings gets in the place of an image or video.
  std::string image_placeholder, video_placeholder;
  // The end token of configurations that leave it out, as transformers does where it is the class's
  // default.
  std::optional<int32_t> default_eos{};
  // A rendered conversation gets the tokenizer's BOS where it has none, as the family's reference
  // processor does.
  bool chat_adds_bos = false;
  // From preprocessor_config.json and video_preprocessor_config.json (or null). Null for text-only
  // families.
  Result<std::shared_ptr<const media::Processor>> (*processor)(const ConfigReader& config,
                                                               const Json& image,
                                                               const Json& video) = nullptr;
};

const std::vector<Family>& families();
// kUnprocessable naming the known architectures when there is none.
Result<const Family*> find_family(const ConfigReader& config);

struct LoadedModel {
  std::unique_ptr<Weights> weights;  // the maps that the model's tensors may be views of
  std::unique_ptr<Model> model;
  const Family* family = nullptr;
  at::ScalarType dtype = at::kFloat;
  int64_t parameters = 0;
  std::vector<std::string> unused_tensors;
};

enum class ModelUse {
  kServing,   // the fastest of the device and backend
  kTraining,  // plain tensors, views of the checkpoint's map where it has the dtype: gradients flow
              // through them
};
// dtype: absent: config.json's, else the checkpoint's; kHalf is refused on CPUs.
Result<LoadedModel> load_model(const std::string& dir, std::optional<at::ScalarType> dtype,
                               at::Device device, ModelUse use = ModelUse::kServing);
// The dtype that load_model takes for a checkpoint that stores `stored`.
Result<at::ScalarType> resolve_dtype(std::optional<at::ScalarType> asked,
                                     const ConfigReader& config, at::ScalarType stored,
                                     at::Device device);
Result<ConfigReader> read_model_config(const std::string& dir);
// Family::spec, with what it refuses as an error.
Result<ModelSpec> read_model_spec(const Family& family, const ConfigReader& config);

}  // namespace valora::models
