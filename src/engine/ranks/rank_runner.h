// Runs the messages of steps on one rank: with its weights, its part of the KV cache, its merged
// weights and its captured steps. Used by the rank's thread only.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>

#include "engine/adapters/mode_switcher.h"
#include "engine/graphs/step_graphs.h"
#include "engine/runner/visual_encoder.h"
#include "models/model.h"
#include "ops/launch/launched_work.h"
#include "serving/batch/batch_message.h"

namespace valora {

class RankRunner {
 public:
  // model, arena, switcher: this rank's. The model must outlive this object. limits: of steps, for
  // captures ahead. switcher: null if the policy never merges. states: the states that sequences
  // keep besides their KV; absent if the model keeps none. communicator: null with one rank; it
  // must outlive this object.
  RankRunner(int rank, const models::Model& model, ops::KvArena arena,
             std::optional<ops::StateArena> states, at::Device device,
             std::unique_ptr<ModeSwitcher> switcher, Communicator* communicator = nullptr,
             const StepLimits& limits = {});

  // The step's hidden states, [T, hidden]; valid until the next call. visuals: must have the
  // embeddings of all inputs in the message.
  at::Tensor forward(const serving::BatchMessage& message, const VisualEncoder& visuals);
  // Logits of the scored rows among the `count` rows of the last forward() that start at `first`:
  // float [rows, vocab], contiguous; undefined on ranks other than 0.
  at::Tensor logits(int64_t first, int64_t count, const serving::ScoredRows& scored) const;
  // As in StepGraphs; nothing without captured steps.
  void expect_adapter(const serving::LoadedAdapter& adapter);
  bool capture_ahead(bool first);
  bool captures_steps() const { return graphs_ != nullptr; }  // the same on all ranks
  GraphStats graph_stats() const { return graphs_ ? graphs_->stats() : GraphStats{}; }
  at::Device device() const { return device_; }
  // Resets the state to that of no adapter ever merged.
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
  // On ranks other than 0, whose work no one else waits for.
  std::unique_ptr<ops::LaunchedWork> launched_;
  at::Tensor hidden_;  // from the last forward()
  int head_module_;    // index of the output layer's module; -1: none
};

}  // namespace valora
