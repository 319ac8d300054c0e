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
  int tokens = 0;  // number of rows, drafts included
  // The step reaches the last known token, so it yields new tokens, or a task head's output.
  bool yields = false;
  int scored = 0;               // how many of its last rows have logits
  std::vector<int32_t> drafts;  // guesses of the next tokens; empty unless `yields`
  // The numbers of rows, ascending, after which the sequence's state is also written to its table's
  // `kept`.
  std::vector<int> kept;

  // Set after the step ran: how many of its last rows do not count as computed.
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
  std::vector<StepItem> items;  // the requests of one adapter are adjacent
  int total_tokens = 0;
  StepShape shape;
  std::vector<FailedRequest> failed;  // requests whose adapters could not be loaded
  // Running requests that still have media tokens to compute after the step, with the tokens up to
  // which their next step may go: first requests outside the step, in order of admission. Their
  // embeddings must be kept; missing ones are computed in parallel with the step.
  std::vector<StepItem> preparing;
  bool waits_for_copies = false;  // no items, but copies in progress will let requests run
};

}  // namespace valora::scheduler
