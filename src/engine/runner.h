// Runs the plan of a step on the model: visual embeddings, flat batch, forward pass, logits,
// sampling and task heads. Only the engine thread uses it.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/decode_graphs.h"
#include "engine/mode_switcher.h"
#include "engine/sequence.h"
#include "engine/visual_encoder.h"
#include "grammar/mask_filler.h"
#include "models/model.h"
#include "scheduler/step_executor.h"

namespace valora {

// Every request of this engine is a sequence.
inline Sequence& sequence_of(const scheduler::StepItem& item) {
  return static_cast<Sequence&>(*item.request);
}
inline Sequence& sequence_of(const scheduler::StepOutput& output) {
  return static_cast<Sequence&>(*output.request);
}

class Runner final : public scheduler::StepExecutor {
 public:
  // The model and the clock must outlive it. visual_cache_bytes: capacity of the cache of visual
  // embeddings. switcher: null if the policy never merges. mask_seconds: CPU time that a step gives
  // to the masks of grammars (FormLimits::step).
  Runner(const models::Model& model, ops::KvArena arena, at::ScalarType dtype, at::Device device,
         size_t visual_cache_bytes, std::unique_ptr<ModeSwitcher> switcher, double mask_seconds,
         const Clock& clock);

  // Whether the images of these tokens are encoded.
  bool ready(const scheduler::Request& request, int begin, int end) const override;
  // Encodes images for as long as the step may be held up.
  std::vector<scheduler::FailedRequest> prepare(const scheduler::StepPlan& plan) override;
  Result<std::vector<scheduler::StepOutput>> run(const scheduler::StepPlan& plan) override;

  // No request is left: drops what was encoded for them.
  void rest() { visuals_.want({}); }

  // Between steps.
  void forget_merged() {
    if (switcher_) switcher_->forget();
  }

  const VisualEncoder& visuals() const { return visuals_; }
  const ModeSwitcher* switcher() const { return switcher_.get(); }  // may be null

 private:
  const models::MergedWeights* use_weights(const scheduler::StepPlan& plan);
  models::Batch build_batch(const scheduler::StepPlan& plan);
  at::Tensor hidden_states(models::Batch& batch);
  at::Tensor logits_of(const at::Tensor& hidden, const std::vector<int64_t>& rows) const;
  Duration time_for_visuals(const scheduler::StepPlan& plan) const;
  std::vector<scheduler::StepOutput> forward(const scheduler::StepPlan& plan);
  void fill_masks(const scheduler::StepPlan& plan);
  void score_prompt(const scheduler::StepItem& item, const at::Tensor& hidden);
  void sample(std::vector<scheduler::StepOutput>& outputs, const at::Tensor& logits);

  const models::Model& model_;
  ops::KvArena arena_;
  at::ScalarType dtype_;
  at::Device device_;
  const double mask_seconds_;  // of CPU time, in a step
  const Clock& clock_;
  VisualEncoder visuals_;
  std::unique_ptr<ModeSwitcher> switcher_;
  std::unique_ptr<DecodeGraphs> graphs_;        // null on CPUs
  Duration decode_time_{};                      // of the last step without prompts
  std::unique_ptr<grammar::MaskFiller> masks_;  // null if the model leaves no core free
};

}  // namespace valora
