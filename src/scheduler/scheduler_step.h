// The state of a Scheduler::plan() call, which several files work on.
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
  int drafts = 0;  // rows of drafts so far
  // With a limit of the gap between tokens: the seconds that this step may take in any case, and
  // its shape so far.
  double free_seconds = 0;
  std::optional<StepShaper> limited;     // absent: no limit
  bool prefills = false;                 // tokens of a prompt are in `limited`
  bool decodes = false;                  // requests decode, and bear the limit
  const Request* media_first = nullptr;  // the oldest running one with media to encode or compute
  bool short_of_memory = false;          // nothing more is admitted
  Request* refused = nullptr;            // the request that did not fit, if any
  bool prepares = false;                 // an admitted request waits for its media
  std::vector<std::shared_ptr<Request>> preempted;
  std::vector<std::shared_ptr<Request>> admitted;
  bool placing = false;  // the policy has chosen: who is admitted runs, unless it must prepare
};

// Puts the requests of a step into the queues of their states, also when the plan is given up.
struct Scheduler::Requeue {
  Scheduler& scheduler;
  const Step& step;
  ~Requeue() { scheduler.requeue(step); }
};

// What is served before a waiting request, first come, first served.
struct Scheduler::Ahead {
  double prefill = 0;  // seconds
  int requests = 0;    // waiting ones
};

// What waiting requests asked for in this plan, in the order of the queue.
struct Scheduler::Asked {
  bool any = false;
  // KV is brought in from the swap space only for as many requests as fit, or they would take it
  // from each other.
  int64_t room = INT64_MAX;   // blocks
  int64_t slots = INT64_MAX;  // requests
  std::vector<Request*> ready;
  Request* full = nullptr;  // the first that found no room
  size_t ready_before_full = 0;
};

// True if tokens of the request's media have no KV yet.
inline bool has_media_left(const Request& request) {
  if (request.identity.media.empty()) return false;
  const memory::MediaSpan& last = request.identity.media.back();
  return last.token_begin + last.tokens > request.computed_tokens;
}

// The requests of a queue, in its order.
inline std::vector<Request*> view(std::span<const std::shared_ptr<Request>> requests) {
  std::vector<Request*> pointers;
  pointers.reserve(requests.size());
  for (const auto& request : requests) pointers.push_back(request.get());
  return pointers;
}

}  // namespace valora::scheduler
