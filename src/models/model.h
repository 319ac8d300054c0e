// The engine's interface to a model.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "media/processors/processor.h"
#include "models/batch.h"
#include "models/spec/model_spec.h"
#include "models/towers/encoding.h"
#include "models/weights/weights.h"

namespace valora::models {

class Linear;

class Model {
 public:
  explicit Model(ModelSpec spec) : spec_(std::move(spec)) {}
  virtual ~Model() = default;

  const ModelSpec& spec() const { return spec_; }
  // Runs a step. Returns the hidden states after the final norm, [T, hidden]. Stores the step's
  // keys and values in batch.kv.
  virtual at::Tensor forward(const Batch& batch) const = 0;
  // The embeddings of the batch's tokens, [T, hidden], visual ones included. Throws c10::Error if
  // the model has no decoder.
  virtual at::Tensor embed(const Batch& batch) const;
  // [rows, hidden] → float [rows, vocab]; undefined on all ranks but the first. Adapters with extra
  // tokens widen the result; the extra columns are minus infinity in other rows.
  virtual at::Tensor logits(const at::Tensor& hidden,
                            const HeadAdaptation& adaptation = {}) const = 0;
  // Encodes images and videos together, piece by piece (models/towers/encoding.h). The items'
  // inputs must outlive the encoding. Throws c10::Error if the model has no vision tower.
  virtual std::unique_ptr<Encoding> begin_encoding(std::vector<VisualItem> items,
                                                   PieceSize pieces) const;
  // Encodes in one go. One [input.tokens, hidden * (1 + visual_levels)] tensor per item, with rows
  // as in VisualRows.
  std::vector<at::Tensor> encode(std::span<const VisualItem> items) const;
  // The linears that a mode may merge an adapter into: the decoder's, each with its module index.
  // Vision tower and projector are excluded: their outputs are cached across steps, and so across
  // modes.
  virtual std::vector<Linear*> decoder_linears() = 0;

 private:
  ModelSpec spec_;
};

}  // namespace valora::models
