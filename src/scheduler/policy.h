// Scheduling policies: which requests a step runs, and in which mode. A policy is a pure function
// of the queues and the time, so that it runs in simulated time, too.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "scheduler/request.h"

namespace valora::scheduler {

// How a step applies adapters (VaLoRA §4.4.1): as segments beside the base weights, merged into the
// weights, or one merged and the others as segments.
enum class Mode { kUnmerged, kMerged, kMixture };
const char* mode_name(Mode mode);  // "unmerged", "merged", "mixture"

// Index of a request in a PolicyState: running requests first, then waiting ones.
using RequestIndex = uint32_t;

struct PolicyState {
  std::span<const Request* const> running;  // by admission
  std::span<const Request* const> waiting;  // by arrival, preempted ones first
  int token_budget = 0;
  int max_sequences = 0;
  Mode mode = Mode::kUnmerged;    // of the previous step
  AdapterId merged = kBaseModel;  // the adapter merged in the previous step

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
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string name() const = 0;
  // Whether its plans may name an adapter to merge. If so, the engine allocates what merging needs.
  virtual bool merges() const { return false; }
  virtual PolicyPlan plan(const PolicyState& state, TimePoint now) const = 0;
};

// All requests in fcfs_order(), unmerged.
std::unique_ptr<Policy> make_unmerged_policy();
// Each step runs the requests of one adapter, merged, or those of the base model: those of the
// oldest request of the highest priority. All others wait.
std::unique_ptr<Policy> make_merged_policy();
// All requests in fcfs_order(), with the adapter merged that most of the requests in the step use
// (VaLoRA §4.4.2). A merged adapter is replaced only by one with more than twice its requests.
// Unmerged if no request of the step uses an adapter.
std::unique_ptr<Policy> make_mixture_policy();
// By the value of --scheduling-policy. kInvalidArgument for an unknown name; the message lists the
// known ones.
Result<std::unique_ptr<Policy>> make_policy(const std::string& name);

}  // namespace valora::scheduler
