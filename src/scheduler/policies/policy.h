// Scheduling policies: which requests a step runs, and in which mode. A policy is a pure function
// of the queues, its memory and the time, so that it also runs in simulated time.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "scheduler/costs/live_costs.h"
#include "scheduler/costs/step_shape.h"
#include "scheduler/request.h"

namespace valora::scheduler {

// Index of a request in a PolicyState: running requests first, then waiting ones.
using RequestIndex = uint32_t;

// State that a policy carries from step to step. The scheduler stores it but does not read it.
struct PolicyMemory {
  AdapterId target = kBaseModel;  // the weights that would have been better than the current ones
  double saved = 0;               // seconds they would have saved so far
  double threshold = 0;           // used by dlora
};

struct PolicyState {
  std::span<const Request* const> running;  // by admission
  // The first requests that could run now, in the order of WaitingQueue.
  std::span<const Request* const> waiting;
  bool contended = false;  // several tenants wait: their order preserves the shares
  int token_budget = 0;
  int max_sequences = 0;
  int64_t free_tokens = std::numeric_limits<int64_t>::max();  // room for waiting requests
  WeightsInUse weights;                                       // after the previous step
  const LiveCosts* costs = nullptr;                           // null or !known(): costs are unknown
  PolicyMemory memory;

  size_t size() const { return running.size() + waiting.size(); }
  const Request& operator[](RequestIndex i) const {
    return i < running.size() ? *running[i] : *waiting[i - running.size()];
  }
};

struct PolicyPlan {
  Mode mode = Mode::kUnmerged;
  AdapterId merged = kBaseModel;  // Request::merge of the last such request in `order`, or none
  // Requests in the order in which they get tokens and memory. A request that is left out does not
  // run in this step; if it is running, it keeps its memory unless nothing else can run. Preemption
  // starts from the end of the order.
  std::vector<RequestIndex> order;
  PolicyMemory memory = {};
  // Requests that the mode excludes from this step; Request::passed accumulates the time.
  std::vector<RequestIndex> passed = {};
};

// The constants of the policies.
struct PolicyOptions {
  // valora: θ of Algorithm 1, the total time for which modes may leave a request out, unless it has
  // its own tolerance. dlora: the time for which a request may be left out at once.
  Duration tolerance = std::chrono::milliseconds(200);
  double merged_share = 0.5;    // share of a full batch; above it, one adapter is merged
  double starving_share = 0.5;  // share of a full batch; while more starve, a merge must save more
  // Merged mode must yield this many times the tokens per second of serving all requests. Below
  // about 1.1, the requests it leaves out lose what the others gain.
  double merged_gain = 1.1;
  // vllm: adapters per step. unmerged: once a step has this many adapters, requests of other
  // adapters come last (S-LoRA's clusters); 0: no limit.
  int max_adapters = 0;
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string name() const = 0;
  // True if plans may name an adapter to merge. The engine then allocates memory for merged
  // weights.
  virtual bool merges() const { return false; }
  virtual PolicyPlan plan(const PolicyState& state, TimePoint now) const = 0;
};

// All requests in fcfs_order(), unmerged. max_adapters: once the step has this many adapters,
// waiting requests of these adapters go before others (S-LoRA, appendix A.2).
std::unique_ptr<Policy> make_unmerged_policy(const PolicyOptions& options = {});
// Each step runs the requests of one adapter, merged, or those of the base model: whichever the
// oldest request of the highest priority uses. All others wait.
std::unique_ptr<Policy> make_merged_policy(const PolicyOptions& options = {});
// All requests in fcfs_order(), with the adapter used by most of the step's requests merged (VaLoRA
// §4.4.2). A merged adapter is replaced only by one with more than twice its requests. Unmerged if
// no request of the step uses an adapter, or its merge would change answers of others
// (Request::merges_among_others).
std::unique_ptr<Policy> make_mixture_policy(const PolicyOptions& options = {});
// VaLoRA's Algorithm 1 over measured costs (valora_policy.cc).
std::unique_ptr<Policy> make_valora_policy(const PolicyOptions& options = {});
// Policies of other systems. dlora: merged or unmerged, by the share of the most frequent adapter
// and an adaptive threshold (dLoRA, OSDI '24). vllm: unmerged, first come, first served, at most
// max_adapters adapters per step (0: its default, 1); requests for others wait.
std::unique_ptr<Policy> make_dlora_policy(const PolicyOptions& options = {});
std::unique_ptr<Policy> make_vllm_policy(const PolicyOptions& options = {});
// Creates a policy by the value of --scheduling-policy. kInvalidArgument for an unknown name; the
// message lists the known ones.
Result<std::unique_ptr<Policy>> make_policy(const std::string& name,
                                            const PolicyOptions& options = {});

}  // namespace valora::scheduler
