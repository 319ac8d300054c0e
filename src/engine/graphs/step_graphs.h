// Steps on a GPU as captured graphs: one launch instead of hundreds, whose CPU cost would otherwise
// dominate except for large models and batches.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>

#include "base/threads/communicator.h"
#include "engine/graphs/likely_kinds.h"
#include "models/batch.h"
#include "models/model.h"
#include "ops/delta/state_arena.h"
#include "ops/lora/lora.h"

namespace valora {

struct GraphStats {
  uint64_t graphs = 0;   // kinds of steps that are captured now
  uint64_t replays = 0;  // steps
};

class StepGraphs {
 public:
  virtual ~StepGraphs() = default;

  // Null if the model's steps cannot be captured: on CPUs, with kernels other than valora's, with
  // sizes that valora's kernels do not run on tensor cores, or if VALORA_GPU_CAPTURE is "none";
  // with "decode", only steps of one token per sequence are captured, and with "seen" all kinds,
  // but none ahead. states: null if sequences keep none besides their KV. limits: the
  // largest steps. communicator: that of the ranks, to which `rank` belongs; null with one rank.
  // The model and the communicator must outlive the result.
  static std::unique_ptr<StepGraphs> make(const models::Model& model, const ops::KvArena& arena,
                                          const ops::StateArena* states, const StepLimits& limits,
                                          int rank = 0, Communicator* communicator = nullptr);

  // The result of Model::forward for a batch whose tokens and positions are on the host. Absent if
  // the step exceeds the bounds of captured steps (ops/step/step_bounds.h), its kind is too rare to
  // be captured, or it uses something that a graph cannot hold: rotary frequencies that depend on
  // the lengths of sequences, embeddings for later layers. The tensor is valid until the next call.
  // The device must have finished the previous step. Either all ranks capture a step or none does;
  // throws RankLostError if this rank failed while the others wait for its collectives.
  virtual std::optional<at::Tensor> forward(const models::Batch& batch) = 0;

  // Steps may use this adapter, of this rank, from now on.
  virtual void expect_adapter(const ops::AdapterWeights& adapter) = 0;
  // Captures a kind of step before a step needs it: one that a step has had, else a likely one
  // (engine/graphs/likely_kinds.h). Between steps; it runs a step without tokens, which writes to
  // no block of the KV cache. Does not throw if the capture fails, except as forward(). first: only
  // the likeliest kinds. Returns false if no kind is left, or if captures have failed. The same on
  // all ranks.
  virtual bool capture_ahead(bool first) = 0;
  virtual GraphStats stats() const = 0;
};

}  // namespace valora
