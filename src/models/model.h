// What the engine knows of a model.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "adapters/module_table.h"
#include "base/result.h"
#include "media/processor.h"
#include "models/batch.h"
#include "models/config_reader.h"
#include "models/weights.h"

namespace valora::models {

// A model's shape, read from its config alone.
struct ModelSpec {
  std::string architecture;
  int64_t vocab = 0, hidden = 0, layers = 0, kv_heads = 0, head_dim = 0;
  int64_t max_positions = 0;
  int axes = 1;  // of positions
  // Placeholder tokens that visual inputs expand into; absent where the model takes none.
  std::optional<int32_t> image_token, video_token;
  int visual_merge = 1;  // patches a side that one visual token stands for
  double time_positions_per_second =
      0;  // of a video's temporal axis; 0: one position a temporal patch
  adapters::ModuleTable modules;
  std::vector<adapters::PrefixAlias> aliases;  // of tensor and module names
};

// A visual input at its place among the prompt's tokens.
struct VisualSpan {
  int token_begin = 0;
  std::shared_ptr<const media::VisualInput> input;
};

// Positions of a sequence: of each prompt token, and what a generated token's index is shifted by.
struct Positions {
  std::vector<int32_t> prompt;  // [axes][tokens]
  int32_t delta = 0;  // generated token i of the sequence stands at i + delta on every axis
};

class Linear;

class Model {
 public:
  explicit Model(ModelSpec spec) : spec_(std::move(spec)) {}
  virtual ~Model() = default;

  const ModelSpec& spec() const { return spec_; }
  // Runs a step: [T, hidden] after the last norm. Writes the step's keys and values into batch.kv.
  virtual at::Tensor forward(const Batch& batch) const = 0;
  virtual at::Tensor logits(const at::Tensor& hidden) const = 0;  // float [rows, vocab]
  // Embeddings of images and videos, encoded together: of each item [input.tokens, hidden].
  virtual std::vector<at::Tensor> encode(std::span<const VisualItem> items) const;
  // The decoder's linears that adapters may touch, each with its module index: what a mode may
  // merge an adapter into. Vision tower and projector are not among them: their embeddings outlive
  // a step, and with it its mode.
  virtual std::vector<Linear*> decoder_linears() = 0;

 private:
  ModelSpec spec_;
};

// Positions that count up by one: text models.
Positions text_positions(int tokens, int axes);

}  // namespace valora::models
