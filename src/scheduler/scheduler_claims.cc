// How waiting requests claim their adapters, and KV in the swap space, from the pool.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "memory/pool.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_step.h"

namespace valora::scheduler {

using memory::Readiness;

namespace {

// Requests whose KV is brought in before the step has a place for them.
constexpr int kAhead = 8;

// Adds the time since the request's last claim to its wait for the resource it lacked then.
void note_wait(Request& request, Readiness readiness, TimePoint now) {
  const Duration waited = now - request.asked_at;
  if (request.readiness == Readiness::kLoadingAdapter) request.adapter_wait += waited;
  if (request.readiness == Readiness::kLoadingKv) request.kv_wait += waited;
  request.readiness = readiness;
  request.asked_at = now;
}

Error too_late(const Request& request) {
  return {ErrorCode::kUnavailable,
          fmt::format("the first token cannot come within its target of {} s; try again later",
                      seconds(request.deadline - request.arrival)),
          {}};
}

}  // namespace

Readiness Scheduler::claim(Request& request) {
  if (pool_.prefix_caching() && !request.claim.ready)
    memory::extend_block_keys(request.identity, request.tokens, request.block_keys);
  const bool before = request.claim.ready;
  const Readiness readiness = pool_.claim(request.claim, request.identity, request.block_keys,
                                          static_cast<int>(request.tokens.size()));
  if (!before && request.claim.ready) ++grants_;
  return readiness;
}

// Requests pushed out of the window by others return their claims.
void Scheduler::update_window() {
  std::vector<Request*> window = waiting_.first(window_size());
  for (Request* request : window) request->last_window = plans_;
  for (Request* request : window_)
    if (request->last_window != plans_) pool_.unclaim(request->claim);
  window_ = std::move(window);
}

// True if a request may claim memory, given the claims of requests before it.
bool Scheduler::may_ask(const Request& request, Asked& asked) const {
  const bool first = !std::exchange(asked.any, true);
  if (!request.claim.ready && !request.claim.holds() && asked.full) return false;
  const bool fits = asked.room > 0 && asked.slots-- > 0;
  // The first request may always claim if nothing runs, because the others wait for it.
  if (request.claim.ready || (first && running_.empty())) return true;
  if (!fits) return false;
  // No load starts while a request that is due to run lacks memory, since it would take the memory
  // that others return.
  const bool brings = pool_.swaps() || !request.identity.adapters.empty();
  return !lacks_memory_ || !brings;
}

void Scheduler::ask(Step& step, Request& request, Asked& asked) {
  asked.room -= memory::blocks_for(static_cast<int64_t>(request.tokens.size())) + 1 -
                static_cast<int64_t>(request.claim.prefix.blocks.size());
  const Readiness readiness = claim(request);
  note_wait(request, readiness, step.now);
  if (readiness != Readiness::kFull) request.full_since.reset();
  switch (readiness) {
    case Readiness::kReady: asked.ready.push_back(&request); break;
    case Readiness::kFull:
      if (!request.full_since) request.full_since = step.now;
      if (asked.full) break;
      asked.full = &request;
      asked.ready_before_full = asked.ready.size();
      break;
    case Readiness::kFailed: step.plan.failed.push_back({&request, *request.claim.error}); break;
    case Readiness::kLoadingAdapter:
    case Readiness::kLoadingKv: break;
  }
}

// The requests that could run now, in queue order. The others claim their resources by priority
// until one finds no room. Ready requests may overtake that one until its patience ends; then none
// may, and the requests behind it return their claims.
std::vector<Request*> Scheduler::claim_waiting(Step& step) {
  update_window();
  Asked asked;
  if (pool_.swaps()) {
    asked.room = pool_.available_blocks();
    asked.slots = config_.max_num_seqs - static_cast<int64_t>(running_.size()) + kAhead;
  }
  Ahead ahead{.prefill = config_.early_abort ? running_prefill() : 0};
  for (Request* request : window_) {
    culprit_ = request;
    if (config_.early_abort && misses_target(*request, ahead, step.now))
      step.plan.failed.push_back({request, too_late(*request)});
    else if (may_ask(*request, asked))
      ask(step, *request, asked);
  }
  const bool nothing_runs = running_.empty() && asked.ready.empty();
  if (Request* full = asked.full;
      full && (step.now - *full->full_since >= config_.patience || nothing_runs)) {
    asked.ready.resize(asked.ready_before_full);
    culprit_ = full;
    (void)force_claim(*full);
  }
  culprit_ = nullptr;
  return std::move(asked.ready);
}

Readiness Scheduler::force_claim(Request& request) {
  while (true) {
    const Readiness readiness = claim(request);
    if (readiness != Readiness::kFull || !revoke_last_claim(request)) return readiness;
  }
}

// If nothing runs or prepares, the first request gets the memory that the others claimed. Otherwise
// waiting requests could block each other forever.
void Scheduler::force_first_request(Step& step) {
  const auto failed = [&](const Request* request) {
    return std::ranges::find(step.plan.failed, request, &FailedRequest::request) !=
           step.plan.failed.end();
  };
  const auto first = std::ranges::find_if_not(window_, failed);
  if (first == window_.end()) return;
  Request& request = **first;
  culprit_ = &request;
  const Readiness readiness = force_claim(request);
  note_wait(request, readiness, step.now);
  if (readiness == Readiness::kFailed) step.plan.failed.push_back({&request, *request.claim.error});
  if (readiness != Readiness::kReady) return;
  step.plan.mode = mode_ = Mode::kUnmerged;  // for a request that the policy did not choose
  step.plan.merged = kBaseModel;
  force_admit(step, request);
  lacks_memory_ = request.state != RequestState::kRunning;
}

// Revokes the claim of the last waiting request behind `before` (which may be running), or else of
// the merged adapter. Returns false if there is none.
bool Scheduler::revoke_last_claim(const Request& before) {
  for (size_t i = window_.size(); i-- > 0;) {
    Request& request = *window_[i];
    if (&request == &before) break;
    if (!request.claim.holds() || request.state != RequestState::kWaiting) continue;
    pool_.unclaim(request.claim);
    return true;
  }
  if (!merged_claim_.holds()) return false;
  pool_.unclaim(merged_claim_);
  merged_ = kBaseModel;
  return true;
}

Waits Scheduler::waits() const {
  Waits waits;
  for (const Request* request : window_) {
    waits.claims += request->claim.holds() ? 1 : 0;
    switch (request->readiness) {
      case Readiness::kLoadingAdapter: ++waits.adapters; break;
      case Readiness::kLoadingKv: ++waits.kv; break;
      case Readiness::kFull: ++waits.room; break;
      case Readiness::kReady:
      case Readiness::kFailed: ++waits.turn; break;
    }
  }
  return waits;
}

void Scheduler::release_claims() {
  for (Request* request : window_) {
    pool_.unclaim(request->claim);
    request->full_since.reset();
  }
  pool_.unclaim(merged_claim_);
  merged_ = kBaseModel;
}

void Scheduler::forget_merged() {
  pool_.unclaim(merged_claim_);
  merged_ = kBaseModel;
  weights_ = {.in_place = config_.merge_in_place};
  mode_ = Mode::kUnmerged;
}

// Keeps the merged adapter in the pool while merged.
void Scheduler::claim_merged_adapter(Step& step) {
  const AdapterId wanted = step.plan.merged;
  if (wanted == merged_ && wanted != kBaseModel) return;
  pool_.unclaim(merged_claim_);
  merged_ = kBaseModel;
  for (const Request* request : step.order) {
    if (request->merge != wanted || wanted == kBaseModel) continue;
    const memory::KvIdentity identity{{}, {request->merge_need}, {}};
    merged_claim_.counted = true;  // does not count as a visit
    if (pool_.claim(merged_claim_, identity, {}, 0) == Readiness::kReady) merged_ = wanted;
    break;
  }
  if (merged_ == wanted) return;
  step.plan.merged = kBaseModel;
  step.plan.mode = mode_ = Mode::kUnmerged;
}

}  // namespace valora::scheduler
