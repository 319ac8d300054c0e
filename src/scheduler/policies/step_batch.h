// The step that a policy's order would produce: the requests that fit, and its shape.
#pragma once

#include <span>

#include "scheduler/policies/policy.h"

namespace valora::scheduler {

struct StepBatch {
  StepShape shape;
  int requests = 0;
  // The step's value in output tokens: one per decoding request; for a part of a prompt, the share
  // of its remaining steps that it saves, which may be none.
  double yields = 0;
};

// The weights of a step, and whether only requests of the merged adapter run.
struct StepMode {
  Mode mode = Mode::kUnmerged;
  AdapterId merged = kBaseModel;
};

// The requests of an order that merged mode may run: those of the adapter. A waiting one does not
// overtake requests of other tenants, since that would undo the shares.
std::vector<RequestIndex> merged_order(const PolicyState& state,
                                       std::span<const RequestIndex> order, AdapterId merged);

// Fills a step in this order, as the scheduler does. In merged mode, other requests are skipped.
StepBatch batch_of(const PolicyState& state, std::span<const RequestIndex> order,
                   const StepMode& mode);

// A request's part of a step.
struct StepPart {
  RequestIndex request = 0;
  int tokens = 0;
};
// The step of all requests, in this order.
std::vector<StepPart> parts_of(const PolicyState& state, std::span<const RequestIndex> order);

// Number of requests per mergeable adapter, in order of first occurrence. Counts only requests that
// fit into the step.
std::vector<std::pair<AdapterId, int>> count_merges(const PolicyState& state,
                                                    std::span<const RequestIndex> order);

}  // namespace valora::scheduler
