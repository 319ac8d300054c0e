// Runs the plan of a step on the model: visual embeddings, flat batch, forward pass, logits,
// sampling and task heads. Only the engine thread uses it.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/mode_switcher.h"
#include "engine/sequence.h"
#include "engine/visual_cache.h"
#include "models/model.h"
#include "scheduler/step_executor.h"

namespace valora {

// The message of an exception, without the backtrace that torch appends to its own.
std::string reason_of(const std::exception& e);

class Runner final : public scheduler::StepExecutor {
 public:
  // `model` must outlive it. visual_cache_bytes: capacity of the cache of visual embeddings.
  // switcher: null if the policy never merges.
  Runner(const models::Model& model, ops::KvArena arena, at::ScalarType dtype, at::Device device,
         size_t visual_cache_bytes, std::unique_ptr<ModeSwitcher> switcher);

  // Encodes the images of the plan that are not cached.
  std::vector<scheduler::FailedRequest> prepare(const scheduler::StepPlan& plan) override;
  Result<std::vector<scheduler::StepOutput>> run(const scheduler::StepPlan& plan) override;

  const VisualCache& visual_cache() const { return visual_cache_; }
  const ModeSwitcher* switcher() const { return switcher_.get(); }  // may be null

 private:
  struct Visual;  // an image or video to encode

  const models::MergedWeights* use_weights(const scheduler::StepPlan& plan);
  models::Batch build_batch(const scheduler::StepPlan& plan);
  void encode(std::span<const Visual> visuals);
  Status encode_together(std::span<const Visual> visuals);
  std::vector<scheduler::StepOutput> forward(const scheduler::StepPlan& plan);
  void sample(std::vector<scheduler::StepOutput>& outputs, const at::Tensor& logits);

  const models::Model& model_;
  ops::KvArena arena_;
  at::ScalarType dtype_;
  at::Device device_;
  VisualCache visual_cache_;
  std::unique_ptr<ModeSwitcher> switcher_;
  // The visual embeddings of this step, or the error of encoding. Kept here because a small cache
  // may evict one before it is used.
  std::unordered_map<Digest, Result<at::Tensor>> step_visuals_;
};

}  // namespace valora
