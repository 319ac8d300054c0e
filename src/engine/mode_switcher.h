// Switches the weights that steps run on: the base model's, or the same with one adapter merged
// (VaLoRA §4.4.1). Not thread-safe: only the engine thread uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "api/options.h"
#include "base/clock.h"
#include "base/result.h"
#include "models/layers.h"
#include "models/model.h"
#include "models/weights.h"
#include "ops/launched_work.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora {

struct ModeStats {
  uint64_t switches = 0;     // changes of the adapter in use, base included
  uint64_t merges = 0;       // switches that had to merge an adapter
  double merge_seconds = 0;  // time of merging, and of restoring base weights
};

// The base weights were overwritten and cannot be restored: no step can run any more.
struct LostWeights : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class ModeSwitcher {
 public:
  // `model`, of this rank, `checkpoint` and `clock` must outlive it. launched: on the device of the
  // weights. Throws c10::Error if there is no memory for the shadow.
  ModeSwitcher(models::Model& model, models::Weights& checkpoint, int rank, MergePlace place,
               std::unique_ptr<ops::LaunchedWork> launched, const Clock& clock);

  // Bytes of the shadow of a model.
  static int64_t shadow_bytes(models::Model& model);

  // Selects the adapter that is merged, at coefficient 1; null: the base model. Returns the value
  // for Adaptation::merged. If the adapter is still merged from an earlier call, no weight is
  // written. The merged adapter is kept alive. If a call throws, the next one restores a consistent
  // state. Throws LostWeights if the checkpoint's files changed and kInPlace needs them.
  const models::MergedWeights* use(const std::shared_ptr<const serving::LoadedAdapter>& adapter);
  // As if no adapter had been merged: the next use() of one merges it. Throws as use().
  void forget();
  // The adapter of the last use(); null: the base model.
  const std::shared_ptr<const serving::LoadedAdapter>& in_use() const { return in_use_; }
  const ModeStats& stats() const { return stats_; }

 private:
  struct Target {
    models::Linear* linear;
    ops::Weight merged;  // its memory in the shadow; with kInPlace: the base weight itself
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
  models::MergedWeights merged_;  // views of the shadow, of the modules that held_ targets
  // kInPlace: linears whose base weights are overwritten.
  std::vector<models::Linear*> overwritten_;
  std::shared_ptr<const serving::LoadedAdapter>
      held_;  // the merged adapter, in the shadow or in place
  std::shared_ptr<const serving::LoadedAdapter> in_use_;
  ModeStats stats_;
};

}  // namespace valora
