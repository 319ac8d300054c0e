// What a policy's order would run: the requests that fit into the step, and its shape.
#pragma once

#include <span>

#include "scheduler/policies/policy.h"

namespace valora::scheduler {

struct StepBatch {
  StepShape shape;
  int requests = 0;
  // Output tokens that the step is worth: one per request in decode, and for a part of a prompt its
  // share of the steps that are left of it, which is nothing if it saves no step.
  double yields = 0;
};

// The weights that a step would run on, and whether only requests of the merged adapter run.
struct StepMode {
  Mode mode = Mode::kUnmerged;
  AdapterId merged = kBaseModel;
};

// The requests of an order that merged mode may run: those of the adapter. A waiting one passes no
// other tenant's, or the mode would undo the shares.
std::vector<RequestIndex> merged_order(const PolicyState& state,
                                       std::span<const RequestIndex> order, AdapterId merged);

// Fills a step in this order, as the scheduler does. In merged mode requests of others are passed.
StepBatch batch_of(const PolicyState& state, std::span<const RequestIndex> order,
                   const StepMode& mode);

// What a request has of a step.
struct StepPart {
  RequestIndex request = 0;
  int tokens = 0;
};
// A step of all requests, in this order.
std::vector<StepPart> parts_of(const PolicyState& state, std::span<const RequestIndex> order);

// Number of requests per adapter that may be merged, adapters by first occurrence. Counts requests
// that fit into the step.
std::vector<std::pair<AdapterId, int>> count_merges(const PolicyState& state,
                                                    std::span<const RequestIndex> order);

}  // namespace valora::scheduler
