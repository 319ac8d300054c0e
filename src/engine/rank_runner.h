// Runs the messages of steps on one rank of the model: its weights, its part of the KV cache, its
// merged weights, its captured steps. Used by the rank's thread only.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>

#include "engine/mode_switcher.h"
#include "engine/step_graphs.h"
#include "engine/visual_encoder.h"
#include "models/model.h"
#include "serving/batch/batch_message.h"

namespace valora {

class RankRunner {
 public:
  // model, arena, switcher: of this rank. The model must outlive it. switcher: null if the policy
  // never merges.
  // states: those of sequences besides their KV; absent if the model keeps none.
  RankRunner(int rank, const models::Model& model, ops::KvArena arena,
             std::optional<ops::StateArena> states, at::Device device,
             std::unique_ptr<ModeSwitcher> switcher);

  // The hidden states of the step, [T, hidden]; valid until the next call. visuals: has the
  // embeddings of all inputs in the message.
  at::Tensor forward(const serving::BatchMessage& message, const VisualEncoder& visuals);
  // Of rows of the hidden states: float [rows, vocab], contiguous; undefined on ranks other than
  // the first.
  at::Tensor logits(const at::Tensor& hidden, const serving::ScoredRows& scored) const;
  // As if no adapter had been merged.
  void forget_merged();
  ModeStats mode_stats() const { return switcher_ ? switcher_->stats() : ModeStats{}; }

 private:
  models::Batch batch_of(const serving::BatchMessage& message, const VisualEncoder& visuals);
  models::HeadAdaptation heads_of(const serving::ScoredRows& scored) const;

  const int rank_;
  const models::Model& model_;
  ops::KvArena arena_;
  std::optional<ops::StateArena> states_;
  at::Device device_;
  std::unique_ptr<ModeSwitcher> switcher_;
  std::unique_ptr<StepGraphs> graphs_;  // null on CPUs
  int head_module_;                     // of the output layer; -1: none
};

}  // namespace valora
