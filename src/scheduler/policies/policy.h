// Scheduling policies: which requests a step runs, and in which mode. A policy is a pure function
// of the queues, its memory and the time, so that it also runs in simulated time.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
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
  // θ of Algorithm 1: the total time for which modes may leave a request out, unless it has its own
  // tolerance.
  Duration tolerance = std::chrono::milliseconds(200);
  double merged_share = 0.5;    // share of a full batch; above it, one adapter is merged
  double starving_share = 0.5;  // share of a full batch; while more starve, a merge must save more
  // Merged mode must yield this many times the tokens per second of serving all requests. Below
  // about 1.1, the requests it leaves out lose what the others gain.
  double merged_gain = 1.1;
  // unmerged: once a step has this many adapters, waiting requests of these adapters go before
  // others (S-LoRA, appendix A.2); 0: no limit.
  int max_adapters = 0;
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string name() const = 0;
  // True if plans may name an adapter to merge. The engine then allocates memory for merged
  // weights.
  virtual bool merges() const { return false; }
  // True if plans depend on the costs of steps.
  virtual bool compares_costs() const { return false; }
  virtual PolicyPlan plan(const PolicyState& state, TimePoint now) const = 0;
};

// A row of the table of policies (policy.cc).
struct PolicyRow {
  std::string_view name;     // a value of --scheduling-policy
  std::string_view meaning;  // for --help
  std::unique_ptr<Policy> (*make)(const PolicyOptions&);
};
std::span<const PolicyRow> policies();
// kInvalidArgument for an unknown name; the message lists the known ones.
Result<std::unique_ptr<Policy>> make_policy(const std::string& name,
                                            const PolicyOptions& options = {});

}  // namespace valora::scheduler
