// Runs a step's plan on the model: visual embeddings, forward pass, logits, sampling and task
// heads. Only the engine thread uses it.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/ranks/rank_group.h"
#include "engine/runner/logit_rows.h"
#include "engine/runner/model_fault.h"
#include "engine/runner/visual_encoder.h"
#include "grammar/mask_filler.h"
#include "models/model.h"
#include "ops/device/compute_threads.h"
#include "ops/launch/launched_work.h"
#include "serving/batch/batch_builder.h"
#include "serving/model_runner.h"

namespace valora {

inline serving::Sequence& sequence_of(const scheduler::StepOutput& output) {
  return static_cast<serving::Sequence&>(*output.request);
}

// Runs `body`; an exception, such as a failed allocation, fails only this output's request.
template <typename Body>
void for_output(scheduler::StepOutput& output, Body&& body) {
  try {
    body();
  } catch (const std::exception& e) {
    output.error = model_fault("the answer could not be made", e);
  }
}

class Runner final : public serving::ModelRunner {
 public:
  struct Options {
    size_t visual_cache_bytes = 0;  // capacity of the cache of visual embeddings
    // CPU time per step for grammar masks (FormLimits::step). No limit for models with recurrent
    // state: a request that waits for its mask would run its last token twice.
    double mask_seconds = 0;
    bool adapts_threads = false;  // use fewer compute threads while other programs need the cores
  };
  // model: rank 0's. launched: the work queued on the device. The models of all ranks and the clock
  // must outlive this object.
  Runner(const models::Model& model, std::unique_ptr<RankGroup> ranks, at::ScalarType dtype,
         at::Device device, std::unique_ptr<ops::LaunchedWork> launched, const Options& options,
         const Clock& clock);

  // True if the images among these tokens have been encoded.
  bool ready(const scheduler::Request& request, int begin, int end) const override;
  // Encodes images for as long as the step may be delayed.
  std::vector<scheduler::FailedRequest> prepare(const scheduler::StepPlan& plan) override;
  Result<std::vector<scheduler::StepOutput>> run(const scheduler::StepPlan& plan) override;

  void run_thread(const std::function<void()>& loop) override;
  void before_step() override;
  void release_threads() override;
  void on_idle() override;
  std::string warm_up() override;
  void expect_adapter(const serving::LoadedAdapter& adapter) override;
  bool prepare_ahead() override;
  void forget_merged() override;
  double merge_seconds() const override;
  void fill(EngineStats& stats) const override;
  Result<std::vector<float>> probabilities(adapters::ProblemType type,
                                           const std::vector<float>& logits) const override;

 private:
  bool capture_ahead(bool first);
  std::vector<scheduler::FailedRequest> prepare_visuals(const scheduler::StepPlan& plan);
  Duration time_for_visuals(const scheduler::StepPlan& plan) const;
  std::vector<scheduler::StepOutput> forward(const scheduler::StepPlan& plan);
  void fill_masks(const scheduler::StepPlan& plan);
  static void read_state(scheduler::StepOutput& output, const at::Tensor& state);
  void score_prompt(const scheduler::StepItem& item, int64_t first);
  static void add_states(const scheduler::StepItem& item, const at::Tensor& states);
  void sample(const scheduler::StepPlan& plan, std::vector<scheduler::StepOutput>& outputs,
              const at::Tensor& logits);

  const models::Model& model_;
  const Options options_;
  const Clock& clock_;
  const std::unique_ptr<ops::LaunchedWork> launched_;
  LogitRows rows_;
  VisualEncoder visuals_;
  serving::BatchBuilder builder_;
  const std::unique_ptr<RankGroup> ranks_;
  Duration decode_time_{};                      // time of the last step without prompt tokens
  std::unique_ptr<grammar::MaskFiller> masks_;  // null if the model occupies all cores
  std::optional<ops::ComputeThreads> threads_;  // set within run_thread() if threads are adapted
};

}  // namespace valora
