// The registry of model families, and the loading of models. To add a family, see
// docs/adding-a-family.md.
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
  // The positions of a prompt of `tokens` tokens; `visual` is ascending.
  Positions (*positions)(const ModelSpec& spec, int tokens, std::span<const VisualSpan> visual);
  // For folders without a chat template.
  std::unique_ptr<text::ChatFormat> (*chat_format)(const text::Tokenizer& tokenizer);
  // Text that stands for an image or video in chat templates that take plain strings.
  std::string image_placeholder, video_placeholder;
  // The end-of-sequence token if no file of the folder names one; the default of the reference's
  // configuration class.
  std::optional<int32_t> default_eos{};
  // Whether a rendered conversation gets the tokenizer's BOS if it has none, as in the family's
  // reference processor.
  bool chat_adds_bos = false;
  // Makes the image processor from preprocessor_config.json and video_preprocessor_config.json (or
  // null). Null for text-only families.
  Result<std::shared_ptr<const media::Processor>> (*processor)(const ConfigReader& config,
                                                               const Json& image,
                                                               const Json& video) = nullptr;
};

const std::vector<Family>& families();
// The family of config.json's architecture. kUnprocessable lists the supported ones if it is
// unknown or missing.
Result<const Family*> find_family(const ConfigReader& config);

struct LoadedModel {
  // Of the files; mapped for training, whose tensors may be views of them.
  std::unique_ptr<Weights> weights;
  std::unique_ptr<Model> model;
  const Family* family = nullptr;
  at::ScalarType dtype = at::kFloat;
  int64_t parameters = 0;
  std::vector<std::string> unused_tensors;
};

enum class ModelUse {
  // The fastest form for device and backend, in memory of its own: what happens to the files later
  // does not matter.
  kServing,
  // Plain tensors, through which gradients flow; views of the mapped file if it has the dtype.
  kTraining,
};
// Loads a model folder. dtype: if absent, that of config.json, else that of the checkpoint.
// kNotFound: no folder or no weights. kUnprocessable: the family is unknown, a tensor is missing or
// has another shape, or kHalf on a CPU.
Result<LoadedModel> load_model(const std::string& dir, std::optional<at::ScalarType> dtype,
                               at::Device device, ModelUse use = ModelUse::kServing);
// The dtype that load_model() uses for a checkpoint whose weights are `stored`.
Result<at::ScalarType> resolve_dtype(std::optional<at::ScalarType> asked,
                                     const ConfigReader& config, at::ScalarType stored,
                                     at::Device device);
Result<ConfigReader> read_model_config(const std::string& dir);
// Family::spec, with a LoadError as a Result.
Result<ModelSpec> read_model_spec(const Family& family, const ConfigReader& config);

}  // namespace valora::models
