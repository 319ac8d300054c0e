// Switches the weights that steps use: the base model's, or those with one adapter merged (VaLoRA
// §4.4.1). Not thread-safe: only the engine thread uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "api/options.h"
#include "base/clock.h"
#include "base/result.h"
#include "models/decoder/layers.h"
#include "models/model.h"
#include "models/weights/weights.h"
#include "ops/launch/launched_work.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora {

struct ModeStats {
  uint64_t switches = 0;     // changes of the selected adapter, to and from the base model included
  uint64_t merges = 0;       // switches that had to merge
  double merge_seconds = 0;  // time spent merging and restoring base weights
};

// The base weights were overwritten and cannot be restored: no step can run from now on.
struct WeightsLostError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class ModeSwitcher {
 public:
  // model: of this rank. launched: on the weights' device. `model`, `checkpoint` and `clock` must
  // outlive this object. Throws c10::Error if there is no memory for the shadow.
  ModeSwitcher(models::Model& model, models::Weights& checkpoint, int rank, MergePlace place,
               std::unique_ptr<ops::LaunchedWork> launched, const Clock& clock);

  // Size of a model's shadow in bytes.
  static int64_t shadow_bytes(models::Model& model);

  // Selects the adapter to merge, with coefficient 1; null: the base model. Returns the value for
  // Adaptation::merged. Writes no weights if the adapter is still merged from an earlier call.
  // Keeps the merged adapter alive. If a call throws, the next one restores a consistent state.
  // Throws WeightsLostError if kInPlace needs the checkpoint's files but they have changed.
  const models::MergedWeights* use(const std::shared_ptr<const serving::LoadedAdapter>& adapter);
  // Forgets the merged adapter, so that the next use() merges again. Throws as use().
  void forget();
  // The adapter of the last use(); null: the base model.
  const std::shared_ptr<const serving::LoadedAdapter>& in_use() const { return in_use_; }
  const ModeStats& stats() const { return stats_; }

 private:
  struct Target {
    models::Linear* linear;
    ops::Weight merged;  // a view of the shadow; with kInPlace: the base weight itself
  };

  void make_shadow();
  void merge(const std::shared_ptr<const serving::LoadedAdapter>& adapter);
  void restore();

  models::Model& model_;
  models::Weights& checkpoint_;
  const int rank_;
  MergePlace place_;
  std::unique_ptr<ops::LaunchedWork> launched_;
  const Clock& clock_;
  std::vector<Target> targets_;
  models::MergedWeights merged_;  // views of the shadow, for the modules that held_ targets
  // kInPlace: linears whose base weights are overwritten.
  std::vector<models::Linear*> overwritten_;
  std::shared_ptr<const serving::LoadedAdapter>
      held_;  // the merged adapter, in the shadow or in place
  std::shared_ptr<const serving::LoadedAdapter> in_use_;
  ModeStats stats_;
};

}  // namespace valora
