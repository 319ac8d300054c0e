// What policies share: orders of requests, and the step that an order would produce.
#pragma once

#include <span>
#include <vector>

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

// First-come, first-served order, the starting point of every policy: running requests, decodes
// before prefills, then waiting requests by priority and arrival.
std::vector<RequestIndex> fcfs_order(const PolicyState& state);

// Finds requests that modes, or their latency targets, have kept waiting for too long (VaLoRA
// §4.4.3). Returns the starving requests, those farthest beyond their tolerance first, and moves
// them to the front of the order. Decodes stay before prefills, because a decode takes one token of
// the step while a prefill may take them all, but leave up to half of the step's sequences to
// starving prefills. If several tenants wait, waiting requests keep their order; otherwise a tenant
// flooding the queue with starving requests would go before all others.
//
// tolerance: θ, for requests without their own. The costs must be known.
std::vector<RequestIndex> take_starving(const PolicyState& state, std::vector<RequestIndex>& order,
                                        Duration tolerance, TimePoint now);

}  // namespace valora::scheduler
