// The state of one Scheduler::plan() call, shared by several files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/scheduler.h"

namespace valora::scheduler {

struct Scheduler::Step {
  StepPlan plan;
  TimePoint now{};
  const MediaReady* media = nullptr;
  std::vector<Request*> order;
  size_t tail = 0;  // preemption candidates are before this index of `order`
  int budget = 0;
  int drafts = 0;  // draft rows so far
  // With a limit on the gap between tokens: the seconds that this step may take in any case, and
  // its shape so far.
  double free_seconds = 0;
  std::optional<StepShaper> limited;     // nullopt: no limit
  bool prefills = false;                 // `limited` includes prompt tokens
  bool decodes = false;                  // requests decode, and the limit protects them
  const Request* media_first = nullptr;  // the oldest running with media to encode or compute
  bool short_of_memory = false;          // nothing else is admitted
  Request* refused = nullptr;            // the request that did not fit, if any
  bool prepares = false;                 // an admitted request waits for its media
  std::vector<std::shared_ptr<Request>> preempted;
  std::vector<std::shared_ptr<Request>> admitted;
  bool placing = false;  // the policy has chosen: an admitted request runs, unless it must prepare
};

// Moves the requests of a step to the queues that match their states, even if the plan is
// abandoned.
struct Scheduler::Requeue {
  Scheduler& scheduler;
  const Step& step;
  ~Requeue() { scheduler.requeue(step); }
};

// The work served before a waiting request in first-come, first-served order.
struct Scheduler::Ahead {
  double prefill = 0;  // seconds
  int requests = 0;    // number of waiting requests
};

// The claims of waiting requests in this plan, in queue order.
struct Scheduler::Asked {
  bool any = false;
  // KV is brought in from the swap space only for as many requests as fit, since more would take
  // memory from each other.
  int64_t room = INT64_MAX;   // blocks
  int64_t slots = INT64_MAX;  // requests
  std::vector<Request*> ready;
  Request* full = nullptr;  // the first one that found no room
  size_t ready_before_full = 0;
};

// True if some tokens of the request's media have no KV yet, nor get it in a step of `tokens`.
inline bool has_pending_media(const Request& request, int tokens = 0) {
  if (request.identity.media.empty()) return false;
  const memory::MediaSpan& last = request.identity.media.back();
  return last.token_begin + last.tokens > request.computed_tokens + tokens;
}

// Raw pointers to the requests of a queue, in its order.
inline std::vector<Request*> view(std::span<const std::shared_ptr<Request>> requests) {
  std::vector<Request*> pointers;
  pointers.reserve(requests.size());
  for (const auto& request : requests) pointers.push_back(request.get());
  return pointers;
}

}  // namespace valora::scheduler
