// The weights that steps run on: the base model's, or those with an adapter merged into them
// (VaLoRA §4.4.1).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/options.h"
#include "base/clock.h"
#include "base/result.h"
#include "engine/loaded_adapter.h"
#include "models/layers.h"
#include "models/model.h"
#include "models/weights.h"

namespace valora {

struct ModeStats {
  uint64_t switches = 0;     // changes of the weights in use
  uint64_t merges = 0;       // of these: an adapter had to be merged
  double merge_seconds = 0;  // in merging and in restoring the base's weights
};

class ModeSwitcher {
 public:
  // `model`, `checkpoint` and `clock` outlive it. Throws c10::Error where there is no memory for
  // the shadow.
  ModeSwitcher(models::Model& model, models::Weights& checkpoint, MergePlace place,
               const Clock& clock);

  // Bytes of a model's shadow.
  static int64_t shadow_bytes(models::Model& model);

  // From here on steps run on the base weights with this adapter merged at coefficient 1, or on the
  // base's (null). → what Adaptation::merged must be. Costs nothing where the adapter is still
  // there from the last time; it is kept alive as long. Where it throws, the next call makes all
  // good.
  const models::MergedWeights* use(const std::shared_ptr<const LoadedAdapter>& adapter);
  // Null: the base.
  const std::shared_ptr<const LoadedAdapter>& in_use() const { return in_use_; }
  const ModeStats& stats() const { return stats_; }

 private:
  struct Target {
    models::Linear* linear;
    ops::Weight merged;  // its place in the shadow; in place: the base weight itself
  };

  void make_shadow();
  void own_base();
  void merge(const std::shared_ptr<const LoadedAdapter>& adapter);
  void restore();

  models::Model& model_;
  models::Weights& checkpoint_;
  MergePlace place_;
  const Clock& clock_;
  std::vector<Target> targets_;
  models::MergedWeights merged_;               // the shadow's, of the modules that held_ touches
  std::vector<models::Linear*> overwritten_;   // in place: no longer the checkpoint's
  std::shared_ptr<const LoadedAdapter> held_;  // merged in the shadow, or in place
  std::shared_ptr<const LoadedAdapter> in_use_;
  ModeStats stats_;
};

}  // namespace valora
