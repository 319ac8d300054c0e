// The interface of a model to the engine.
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
#include "models/encoding.h"
#include "models/rope_scaling.h"
#include "models/weights.h"

namespace valora::models {

// The shape of a model, read from its configuration alone.
struct ModelSpec {
  std::string architecture;
  int64_t vocab = 0, hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  int64_t max_positions = 0;
  int64_t window = 0;  // the shortest attention window of a layer; 0: no layer has one
  RopeChange rope_change;
  int axes = 1;  // number of position axes: 1, or 3 for M-RoPE
  // Placeholder tokens that expand to the tokens of an image or video; absent if the model takes
  // none.
  std::optional<int32_t> image_token, video_token;
  int visual_merge = 1;  // a visual token stands for visual_merge² patches
  // Of a video's temporal axis; 0: one position per temporal patch.
  double time_positions_per_second = 0;
  adapters::ModuleTable modules;
  std::vector<adapters::PrefixAlias> aliases;  // older prefixes of tensor and module names
};

// A visual input and the index of its first token in the prompt.
struct VisualSpan {
  int token_begin = 0;
  std::shared_ptr<const media::VisualInput> input;
};

// The positions of a sequence, per prompt token and for generated tokens.
struct Positions {
  std::vector<int32_t> prompt;  // [axes][tokens]
  int32_t delta = 0;  // the token with index i ≥ prompt length has position i + delta on each axis
};

class Linear;

class Model {
 public:
  explicit Model(ModelSpec spec) : spec_(std::move(spec)) {}
  virtual ~Model() = default;

  const ModelSpec& spec() const { return spec_; }
  // Runs a step. Returns the hidden states after the final norm, [T, hidden]. Writes the step's
  // keys and values to batch.kv.
  virtual at::Tensor forward(const Batch& batch) const = 0;
  // [rows, hidden] → float [rows, vocab]
  virtual at::Tensor logits(const at::Tensor& hidden) const = 0;
  // Encodes images and videos together, piece by piece (models/encoding.h). The items' inputs must
  // outlive it. Throws c10::Error if the model takes none.
  virtual std::unique_ptr<Encoding> begin_encoding(std::vector<VisualItem> items,
                                                   PieceSize pieces) const;
  // All pieces at once. One [input.tokens, hidden] tensor per item.
  std::vector<at::Tensor> encode(std::span<const VisualItem> items) const;
  // The linears that a mode may merge an adapter into: those of the decoder, each with its module
  // index. Not those of the vision tower and the projector: their outputs are cached across steps,
  // and so across modes.
  virtual std::vector<Linear*> decoder_linears() = 0;

 private:
  ModelSpec spec_;
};

// The length that rotary frequencies follow in one pass over these positions, of any axes: the
// largest one + 1.
int64_t length_of(std::span<const int32_t> positions);

// Positions 0, 1, 2, … on every axis, for text.
Positions text_positions(int tokens, int axes);

}  // namespace valora::models
