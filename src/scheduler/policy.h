// What runs next, and in which mode: a pure function of the queues and the time, so that every
// policy runs under a simulated clock.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "scheduler/request.h"

namespace valora::scheduler {

// How a step applies adapters (VaLoRA §4.4.1). A mode is data: weights in use and segments.
enum class Mode { kUnmerged, kMerged, kMixture };
const char* mode_name(Mode mode);  // "unmerged", "merged", "mixture"

// A request of a PolicyState: the running ones are numbered first, then the waiting ones.
using RequestIndex = uint32_t;

struct PolicyState {
  std::span<const Request* const> running;  // in the order they were admitted
  std::span<const Request* const> waiting;  // in the order they arrived, preempted ones first
  int token_budget = 0;
  int max_sequences = 0;
  Mode mode = Mode::kUnmerged;    // of the last step
  AdapterId merged = kBaseModel;  // whose weights are merged

  size_t size() const { return running.size() + waiting.size(); }
  const Request& operator[](RequestIndex i) const {
    return i < running.size() ? *running[i] : *waiting[i - running.size()];
  }
};

struct PolicyPlan {
  Mode mode = Mode::kUnmerged;
  AdapterId merged = kBaseModel;  // the `merge` of some request in the order
  // Requests in the order in which they get tokens and memory; one left out does not run in this
  // step (a running one keeps its memory, unless nothing could run otherwise). Memory is taken back
  // from the end.
  std::vector<RequestIndex> order;
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string name() const = 0;
  // Its plans may name an adapter to merge: the engine keeps the means for it.
  virtual bool merges() const { return false; }
  virtual PolicyPlan plan(const PolicyState& state, TimePoint now) const = 0;
};

// First come, first served: running requests, decodes before prefills, then waiting ones by
// priority and arrival. Unmerged.
std::unique_ptr<Policy> make_unmerged_policy();
// Each step serves the requests of one adapter, merged, or those of the base model: of whichever
// the oldest request of the highest priority is. The others wait.
std::unique_ptr<Policy> make_merged_policy();
// All requests, first come, first served, with the adapter merged that most of those that run are
// of (VaLoRA §4.4.2); a merged one stays until another has more than twice its requests. Where none
// is of an adapter: unmerged.
std::unique_ptr<Policy> make_mixture_policy();
// By the name of the --scheduling-policy option; unknown names list the known ones.
Result<std::unique_ptr<Policy>> make_policy(const std::string& name);

}  // namespace valora::scheduler
