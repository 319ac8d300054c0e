// Decode steps on a GPU as captured graphs: one launch instead of hundreds, whose cost on the host
// would bound small models and batches.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>

#include "models/batch.h"
#include "models/model.h"

namespace valora {

class DecodeGraphs {
 public:
  virtual ~DecodeGraphs() = default;

  // Null if the model's steps cannot be captured: on CPUs, with other kernels than valora's, or
  // with sizes that these do not decode on tensor cores. The model must outlive it.
  static std::unique_ptr<DecodeGraphs> make(const models::Model& model, const ops::KvArena& arena);

  // What Model::forward gives for a batch whose tokens and positions are on the host. Absent if the
  // step is not of one token per sequence, its rotary frequencies follow the lengths of sequences,
  // or its kind is too rare to be captured. The tensor is
  // valid until the next call. The device must have ended the step before.
  virtual std::optional<at::Tensor> forward(const models::Batch& batch) = 0;
};

}  // namespace valora
