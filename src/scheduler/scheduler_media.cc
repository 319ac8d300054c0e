// Requests whose tokens wait for images and videos to be encoded.
#include <algorithm>

#include "memory/pool.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_step.h"

namespace valora::scheduler {
namespace {

int64_t media_tokens(const Request& request) {
  int64_t sum = 0;
  for (const memory::MediaSpan& span : request.identity.media) sum += span.tokens;
  return sum;
}

}  // namespace

// The cached prefix of a waiting request is not known yet, so it may need fewer media in the end.
bool Scheduler::waits_for_media(const Request& request, const MediaReady& media) const {
  if (!media || !has_pending_media(request)) return false;
  const int tokens = std::min(request.remaining_tokens(), config_.max_num_batched_tokens);
  return !media(request, request.computed_tokens, request.computed_tokens + tokens);
}

// The running requests that a policy may choose from, in order of admission.
std::vector<Request*> Scheduler::find_runnable(const MediaReady& media) {
  std::vector<Request*> runnable;
  runnable.reserve(running_.size());
  for (const auto& request : running_) {
    request->preparing = waits_for_media(*request, media);
    if (!request->preparing) runnable.push_back(request.get());
  }
  return runnable;
}

// Admits, in their turn, requests that must wait for their media, and returns the others. The
// latter keep their room if they are ahead in the queue; if a request finds no room, nothing behind
// it may overtake.
std::vector<Request*> Scheduler::start_preparing(Step& step, const std::vector<Request*>& ready) {
  int64_t tokens = 0;
  for (const auto& request : running_) {
    if (!request->preparing) continue;
    step.prepares = true;
    tokens += media_tokens(*request);
  }
  std::vector<Request*> others;
  others.reserve(ready.size());
  int64_t reserved = 0;  // blocks for the first `counted` of `others`
  size_t counted = 0;
  for (Request* request : ready) {
    if (!waits_for_media(*request, *step.media)) {
      others.push_back(request);
      continue;
    }
    if (tokens >= config_.max_preparing_tokens) continue;
    for (; counted < others.size(); ++counted) {
      const Request& before = *others[counted];
      reserved += 1 + pool_.blocks_to_start(before.identity, before.block_keys,
                                            static_cast<int>(before.tokens.size()));
    }
    step.refused = request;
    culprit_ = request;
    if (!fits(step, *request, reserved)) break;
    admit(step, *request);
    if (request->state != RequestState::kRunning) break;
    step.refused = nullptr;
    if (request->preparing) tokens += media_tokens(*request);
  }
  culprit_ = nullptr;
  return others;
}

void Scheduler::list_preparing(StepPlan& plan) const {
  for (const auto& request : running_)
    if (request->last_plan != plans_ && has_pending_media(*request))
      plan.preparing.push_back(
          {.request = request.get(),
           .tokens = std::min(request->remaining_tokens(), config_.max_num_batched_tokens)});
}

}  // namespace valora::scheduler
