// The interface of a model to the engine.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "media/processor.h"
#include "models/batch.h"
#include "models/encoding.h"
#include "models/spec/model_spec.h"
#include "models/weights.h"

namespace valora::models {

class Linear;

class Model {
 public:
  explicit Model(ModelSpec spec) : spec_(std::move(spec)) {}
  virtual ~Model() = default;

  const ModelSpec& spec() const { return spec_; }
  // Runs a step. Returns the hidden states after the final norm, [T, hidden]. Writes the step's
  // keys and values to batch.kv.
  virtual at::Tensor forward(const Batch& batch) const = 0;
  // The embeddings of the tokens, [T, hidden], visual ones among them. Throws c10::Error if the
  // model has no decoder.
  virtual at::Tensor embed(const Batch& batch) const;
  // [rows, hidden] → float [rows, vocab]; undefined on ranks other than the first. If adapters have
  // further tokens, there are more columns, which are minus infinity in other rows.
  virtual at::Tensor logits(const at::Tensor& hidden,
                            const HeadAdaptation& adaptation = {}) const = 0;
  // Encodes images and videos together, piece by piece (models/encoding.h). The items' inputs must
  // outlive it. Throws c10::Error if the model takes none.
  virtual std::unique_ptr<Encoding> begin_encoding(std::vector<VisualItem> items,
                                                   PieceSize pieces) const;
  // All pieces at once. One [input.tokens, hidden * (1 + visual_levels)] tensor per item, with rows
  // as VisualRows has them.
  std::vector<at::Tensor> encode(std::span<const VisualItem> items) const;
  // The linears that a mode may merge an adapter into: those of the decoder, each with its module
  // index. Not those of the vision tower and the projector: their outputs are cached across steps,
  // and so across modes.
  virtual std::vector<Linear*> decoder_linears() = 0;

 private:
  ModelSpec spec_;
};

}  // namespace valora::models
