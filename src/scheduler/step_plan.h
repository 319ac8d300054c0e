// What a step does: which tokens of which requests run, and in which mode.
#pragma once

#include <vector>

#include "base/result.h"
#include "scheduler/costs/step_shape.h"
#include "scheduler/request.h"

namespace valora::scheduler {

// One request in a step: its tokens [computed, computed + known()) run, then its drafts.
struct StepItem {
  Request* request = nullptr;
  int tokens = 0;  // rows, with those of drafts
  // The step runs its last known token, so it yields the next tokens, or the label of a task head.
  bool yields = false;
  int scored = 0;               // how many of its last rows have logits
  std::vector<int32_t> drafts;  // guesses of the tokens that follow; only if it yields
  // The numbers of rows, ascending, after which the sequence's state is written to its table's
  // `kept`, too.
  std::vector<int> kept;

  // Written when the step has run: how many of its last rows do not count as computed.
  int rejected = 0;

  int known() const { return tokens - static_cast<int>(drafts.size()); }
};

struct FailedRequest {
  Request* request = nullptr;
  Error error;
};

struct StepPlan {
  Mode mode = Mode::kUnmerged;
  AdapterId merged = kBaseModel;
  std::vector<StepItem> items;  // requests of one adapter are adjacent
  int total_tokens = 0;
  StepShape shape;
  std::vector<FailedRequest> failed;  // requests whose adapters could not be loaded
  // Running requests that are not in the step and have tokens of media to come, by admission, with
  // the most tokens that their next step may take. Their embeddings must be kept; missing ones are
  // computed in parallel to the step.
  std::vector<StepItem> preparing;
  bool waits_for_copies = false;  // no item, but copies under way will let requests run
};

}  // namespace valora::scheduler
