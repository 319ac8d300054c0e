// What the engine thread needs of the runner besides steps.
#include <c10/core/InferenceMode.h>

#include "engine/head_logits.h"
#include "engine/model_fault.h"
#include "engine/runner.h"

namespace valora {

void Runner::run_thread(const std::function<void()>& loop) {
  const c10::InferenceMode no_gradients;
  if (options_.adapts_threads) threads_.emplace();
  loop();
  threads_.reset();
}

void Runner::before_step() {
  if (threads_) threads_->adjust();
}

void Runner::release_threads() { ranks_->release_threads(); }

void Runner::on_idle() { visuals_.request({}); }

double Runner::merge_seconds() const { return ranks_->mode_stats().merge_seconds; }

void Runner::fill(EngineStats& stats) const {
  const ModeStats modes = ranks_->mode_stats();
  stats.merge_seconds = modes.merge_seconds;
  stats.mode_switches = modes.switches;
  stats.merges = modes.merges;
  const Communicator::Stats collectives = ranks_->collectives();
  stats.collectives = collectives.collectives;
  stats.collective_bytes = collectives.bytes;
  stats.collective_seconds = collectives.seconds;
  const TensorCache& visuals = visuals_.cache();
  stats.visual_queries = visuals.queries();
  stats.visual_hits = visuals.hits();
  stats.visual_bytes = visuals.bytes();
  stats.visual_entries = visuals.entries();
  stats.visuals_encoded = visuals_.work().visuals;
  stats.visual_seconds = visuals_.work().seconds;
}

Result<std::vector<float>> Runner::probabilities(adapters::ProblemType type,
                                                 const std::vector<float>& logits) const {
  try {
    return probabilities_of(logits, type);
  } catch (const std::exception& e) {
    return model_fault("the request could not be answered", e);
  }
}

}  // namespace valora
