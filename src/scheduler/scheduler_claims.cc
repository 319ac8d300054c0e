// What waiting requests claim of the pool before they run: their adapters, and KV that lies in the
// swap space.
#include <algorithm>
#include <span>

#include "scheduler/scheduler.h"
#include "scheduler/scheduler_step.h"

namespace valora::scheduler {

using memory::Readiness;

Readiness Scheduler::claim(Request& request) {
  if (pool_.prefix_caching() && !request.claim.ready)
    memory::extend_block_keys(request.identity, request.tokens, request.block_keys);
  return pool_.claim(request.claim, request.identity, request.block_keys,
                     static_cast<int>(request.tokens.size()));
}

void Scheduler::note_wait(Request& request, Readiness readiness, TimePoint now) const {
  const Duration waited = now - std::max(last_plan_at_, request.arrival);
  if (readiness == Readiness::kLoadingAdapter) request.adapter_wait += waited;
  if (readiness == Readiness::kLoadingKv) request.kv_wait += waited;
}

// The requests that could run now, in the order of the queue. Each other one asks for what it
// needs, in the order of priority, until one finds no room. Ready requests may pass that one until
// its patience ends; then none passes it, and those behind it give back what they claimed.
std::vector<Request*> Scheduler::claim_waiting(Step& step, TimePoint now) {
  std::vector<Request*> queue;
  queue.reserve(waiting_.size());
  for (const auto& request : waiting_) queue.push_back(request.get());
  if (!std::ranges::is_sorted(queue, {}, &Request::priority))
    std::ranges::stable_sort(queue, {}, &Request::priority);
  std::vector<Request*> ready;
  Request* full = nullptr;
  for (Request* request : queue) {
    if (full && !request->claim.ready && request->claim.pinned.empty()) continue;
    const Readiness readiness = claim(*request);
    note_wait(*request, readiness, now);
    switch (readiness) {
      case Readiness::kReady: ready.push_back(request); break;
      case Readiness::kFull:
        if (!request->full_since) request->full_since = now;
        if (!full) full = request;
        break;
      case Readiness::kFailed: step.plan.failed.push_back({request, *request->claim.error}); break;
      case Readiness::kLoadingAdapter:
      case Readiness::kLoadingKv: break;
    }
    if (readiness != Readiness::kFull) request->full_since.reset();
  }
  if (full && (now - *full->full_since >= config_.patience || (running_.empty() && ready.empty())))
    serve_first(*full, queue, ready);
  return ready;
}

// Nothing passes `full` any more: those behind it do not run, and give back what they claimed.
void Scheduler::serve_first(Request& full, std::span<Request* const> queue,
                            std::vector<Request*>& ready) {
  const auto place = std::ranges::find(queue, &full);
  const auto passed = std::span(queue.begin(), place);
  std::erase_if(ready, [&](Request* r) { return std::ranges::find(passed, r) == passed.end(); });
  while (claim(full) == Readiness::kFull && revoke_last_claim(full)) {
  }
}

// Takes the claim of the last waiting request behind `before`, in the order of claim_waiting(), or
// else of the merged adapter. False: there is none.
bool Scheduler::revoke_last_claim(const Request& before) {
  const bool behind_all = before.state == RequestState::kRunning;
  bool behind = false;
  Request* last = nullptr;
  for (const auto& request : waiting_) {
    behind = behind || request.get() == &before;
    if (request.get() == &before || request->claim.pinned.empty() ||
        request->state != RequestState::kWaiting)
      continue;
    const bool later = behind_all || request->priority > before.priority ||
                       (request->priority == before.priority && behind);
    if (later && (!last || request->priority >= last->priority)) last = request.get();
  }
  if (last) {
    pool_.unclaim(last->claim);
    return true;
  }
  if (merged_claim_.pinned.empty()) return false;
  pool_.unclaim(merged_claim_);
  merged_ = kBaseModel;
  return true;
}

// Keeps the merged adapter in the pool while it is merged.
void Scheduler::hold_merged(Step& step) {
  const AdapterId wanted = step.plan.merged;
  if (wanted == merged_) return;
  pool_.unclaim(merged_claim_);
  merged_ = kBaseModel;
  for (const Request* request : step.order) {
    if (request->merge != wanted || wanted == kBaseModel) continue;
    const memory::KvIdentity identity{{}, {request->merge_need}, {}};
    merged_claim_.counted = true;  // not a visit
    if (pool_.claim(merged_claim_, identity, {}, 0) == Readiness::kReady) merged_ = wanted;
    break;
  }
  if (merged_ == wanted) return;
  step.plan.merged = kBaseModel;
  step.plan.mode = mode_ = Mode::kUnmerged;
}

}  // namespace valora::scheduler
