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

// What a policy wants to know at its next step. The scheduler keeps it and does not read it.
struct PolicyMemory {
  AdapterId target = kBaseModel;  // the weights that would have been better than those in use
  double saved = 0;               // seconds that they would have saved since
  double threshold = 0;           // of dlora
};

struct PolicyState {
  std::span<const Request* const> running;  // by admission
  // The first ones that could run now, in the order of WaitingQueue.
  std::span<const Request* const> waiting;
  bool contended = false;  // requests of several tenants wait: their order keeps the shares
  int token_budget = 0;
  int max_sequences = 0;
  int64_t free_tokens = std::numeric_limits<int64_t>::max();  // that waiting requests have room for
  WeightsInUse weights;                                       // of the previous step
  const LiveCosts* costs = nullptr;  // null, or not known(): no cost is known
  PolicyMemory memory;

  size_t size() const { return running.size() + waiting.size(); }
  const Request& operator[](RequestIndex i) const {
    return i < running.size() ? *running[i] : *waiting[i - running.size()];
  }
};

struct PolicyPlan {
  Mode mode = Mode::kUnmerged;
  AdapterId merged = kBaseModel;  // Request::merge of a request in `order`, the last one, or none
  // Requests in the order in which they get tokens and memory. A request that is left out does not
  // run in this step; if it is running, it keeps its memory unless nothing else can run. Preemption
  // takes memory from the end of the order.
  std::vector<RequestIndex> order;
  PolicyMemory memory = {};
  // Requests that the mode leaves out of this step: Request::passed counts its time.
  std::vector<RequestIndex> passed = {};
};

// The constants of the policies.
struct PolicyOptions {
  // valora, Algorithm 1. θ: how long the mode may leave a request out in total, unless it has a
  // tolerance of its own. dlora: how long it may leave one out at a time.
  Duration tolerance = std::chrono::milliseconds(200);
  double merged_share = 0.5;    // of a full batch, above which one adapter is merged
  double starving_share = 0.5;  // of a full batch; while more starve, a merge must save more
  // By how much more tokens per second merged mode must yield than serving all requests. Below some
  // 10 % the requests that it leaves out lose what the others gain.
  double merged_gain = 1.1;
  // vllm: adapters per step. unmerged: adapters per step from which on requests of others come
  // last (S-LoRA's clusters); 0: no limit.
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

// All requests in fcfs_order(), unmerged. max_adapters: once the step has this number of adapters,
// waiting requests of these go before others (S-LoRA, appendix A.2).
std::unique_ptr<Policy> make_unmerged_policy(const PolicyOptions& options = {});
// Each step runs the requests of one adapter, merged, or those of the base model: those of the
// oldest request of the highest priority. All others wait.
std::unique_ptr<Policy> make_merged_policy(const PolicyOptions& options = {});
// All requests in fcfs_order(), with the adapter merged that most of the requests in the step use
// (VaLoRA §4.4.2). A merged adapter is replaced only by one with more than twice its requests.
// Unmerged if no request of the step uses an adapter.
std::unique_ptr<Policy> make_mixture_policy(const PolicyOptions& options = {});
// VaLoRA's Algorithm 1 over measured costs (valora_policy.cc).
std::unique_ptr<Policy> make_valora_policy(const PolicyOptions& options = {});
// The rivals. dlora: merged or unmerged, by the share of the commonest adapter and a threshold that
// follows its success (dLoRA, OSDI '24). vllm: unmerged, first come, first served, at most
// max_adapters adapters per step (0: 1, its default); requests of others wait.
std::unique_ptr<Policy> make_dlora_policy(const PolicyOptions& options = {});
std::unique_ptr<Policy> make_vllm_policy(const PolicyOptions& options = {});
// By the value of --scheduling-policy. kInvalidArgument for an unknown name; the message lists the
// known ones.
Result<std::unique_ptr<Policy>> make_policy(const std::string& name,
                                            const PolicyOptions& options = {});

}  // namespace valora::scheduler
