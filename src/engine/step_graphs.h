// Steps on a GPU as captured graphs: one launch instead of hundreds, whose cost on the host would
// bound all but large models and batches.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>

#include "models/batch.h"
#include "models/model.h"

namespace valora {

class StepGraphs {
 public:
  virtual ~StepGraphs() = default;

  // Null if the model's steps cannot be captured: on CPUs, with other kernels than valora's, with
  // sizes that these do not run on tensor cores, or if VALORA_GPU_CAPTURE is "none"; "decode"
  // leaves steps of one token per sequence. The model must outlive it.
  static std::unique_ptr<StepGraphs> make(const models::Model& model, const ops::KvArena& arena);

  // What Model::forward gives for a batch whose tokens and positions are on the host. Absent if the
  // step is beyond the bounds of captured ones (ops/step_bounds.h), its kind is too rare to be
  // captured, or it has what a graph cannot hold: rotary frequencies that follow the lengths of
  // sequences, embeddings for later layers, vocabularies of adapters. The tensor is valid until the
  // next call. The device must have ended the step before.
  virtual std::optional<at::Tensor> forward(const models::Batch& batch) = 0;
};

}  // namespace valora
