// Executes a step's plan on the model: batch, visual embeddings, forward pass, logits and heads.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/mode_switcher.h"
#include "engine/sequence.h"
#include "engine/visual_cache.h"
#include "models/model.h"
#include "scheduler/scheduler.h"

namespace valora {

// What one yielding sequence got out of a step.
struct StepOutput {
  Sequence* sequence = nullptr;
  SampledToken token;                            // of the language-model head
  std::optional<Classification> classification;  // of a task head
  std::optional<Error> error;                    // this sequence alone failed
};

// Why a step or an encoding threw; without the stack that torch puts behind its own messages.
std::string reason_of(const std::exception& e);

class Runner {
 public:
  // switcher: none where no plan ever names an adapter to merge.
  Runner(const models::Model& model, ops::KvArena arena, at::ScalarType dtype, at::Device device,
         size_t visual_cache_bytes, std::unique_ptr<ModeSwitcher> switcher);

  // Encodes what the plan's sequences need and is not cached. A sequence whose image fails is named
  // here and must be taken out of the plan; the others go on.
  std::vector<StepOutput> encode_visuals(const scheduler::StepPlan& plan);
  const VisualCache& visual_cache() const { return visual_cache_; }
  const ModeSwitcher* switcher() const { return switcher_.get(); }  // or null
  // Runs the step. One output for each item that yields, in plan order.
  std::vector<StepOutput> run(const scheduler::StepPlan& plan);

 private:
  struct Visual;  // one to be encoded

  const models::MergedWeights* use_weights(const scheduler::StepPlan& plan);
  models::Batch build_batch(const scheduler::StepPlan& plan);
  void encode(std::span<const Visual> visuals);
  Status encode_together(std::span<const Visual> visuals);
  void sample(std::vector<StepOutput>& outputs, const at::Tensor& logits);

  const models::Model& model_;
  ops::KvArena arena_;
  at::ScalarType dtype_;
  at::Device device_;
  VisualCache visual_cache_;
  std::unique_ptr<ModeSwitcher> switcher_;
  // This step's embeddings, so that a small cache cannot lose one between encoding and use; or why
  // there are none.
  std::unordered_map<Digest, Result<at::Tensor>> step_visuals_;
};

}  // namespace valora
