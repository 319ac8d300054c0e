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
#include "scheduler/step_executor.h"

namespace valora {

// Why a step or an encoding threw; without the stack that torch puts behind its own messages.
std::string reason_of(const std::exception& e);

class Runner final : public scheduler::StepExecutor {
 public:
  // switcher: none where no plan ever names an adapter to merge.
  Runner(const models::Model& model, ops::KvArena arena, at::ScalarType dtype, at::Device device,
         size_t visual_cache_bytes, std::unique_ptr<ModeSwitcher> switcher);

  // Encodes the images that the plan needs and that are not cached.
  std::vector<scheduler::FailedRequest> prepare(const scheduler::StepPlan& plan) override;
  Result<std::vector<scheduler::StepOutput>> run(const scheduler::StepPlan& plan) override;

  const VisualCache& visual_cache() const { return visual_cache_; }
  const ModeSwitcher* switcher() const { return switcher_.get(); }  // or null

 private:
  struct Visual;  // one to be encoded

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
  // This step's embeddings, so that a small cache cannot lose one between encoding and use; or why
  // there are none.
  std::unordered_map<Digest, Result<at::Tensor>> step_visuals_;
};

}  // namespace valora
