// The properties of a step that determine its time. Shared by policies, the simulator and the cost
// model.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "scheduler/request.h"

namespace valora::scheduler {

// How a step applies adapters (VaLoRA §4.4.1): as segments on top of the base weights, merged into
// the weights, or one merged and the others as segments.
enum class Mode { kUnmerged, kMerged, kMixture };
const char* mode_name(Mode mode);  // "unmerged", "merged", "mixture"

// The weights that steps use.
struct WeightsInUse {
  AdapterId merged = kBaseModel;  // adapter merged into them; kBaseModel: the base weights
  // The adapter whose merged weights exist, whether in use or not. In place: the one in use.
  AdapterId held = kBaseModel;
  bool in_place = false;  // merging overwrites the base weights
};

struct StepItem;

// A step's changes to the weights before it runs.
struct WeightsChange {
  bool switches = false;  // other weights than before are used
  bool merges = false;    // an adapter is merged
  bool restores = false;  // overwritten base weights are rewritten
  WeightsInUse after;

  bool writes() const { return merges || restores; }
};
WeightsChange change_to(AdapterId merged, const WeightsInUse& weights);

struct StepShape {
  Mode mode = Mode::kUnmerged;
  int prefill_tokens = 0;  // includes preempted requests being recomputed
  int decode_tokens = 0;   // one per decoding request, plus its drafts
  int draft_tokens = 0;    // included in decode_tokens
  int scored_tokens = 0;   // prefill tokens with logits, besides the last one of each prompt
  // Attended keys, summed over the tokens.
  int64_t prefill_context = 0, decode_context = 0;
  // Low-rank products: distinct adapters, the sum of their ranks (data read per linear), and the
  // sum over tokens of the ranks that apply to them (arithmetic).
  int segments = 0;
  int ranks = 0;
  int64_t token_ranks = 0;
  bool switches = false, merges = false, restores = false;  // see WeightsChange
  int merged_rank = 0;                                      // if it merges

  int tokens() const { return prefill_tokens + decode_tokens; }
  friend bool operator==(const StepShape&, const StepShape&) = default;
};

// Builds the shape of a step, request by request.
class StepShaper {
 public:
  // merged: the adapter in the weights; kBaseModel: none.
  StepShaper(Mode mode, AdapterId merged);

  // Adds the next `tokens` tokens of the request, of which the last `drafts` are drafts.
  void add(const Request& request, int tokens, int drafts = 0);
  void add(const StepItem& item);
  void change(const WeightsChange& change);
  StepShape shape() const;

 private:
  void apply(AdapterId adapter, int rank, int tokens);

  StepShape shape_;
  AdapterId merged_;
  int merged_rank_ = 0;
  int64_t merged_tokens_ = 0;  // tokens from which the merged adapter is subtracted
  std::vector<std::pair<AdapterId, int>> applied_;  // adapters with their ranks
};

}  // namespace valora::scheduler
