#include "scheduler/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/reserve.h"
#include "memory/pool.h"
#include "scheduler/scheduler_step.h"

namespace valora::scheduler {
namespace {

using memory::BlockTable;
using memory::kBlockTokens;

bool media_in_order(const Request& request) {
  int64_t end = 0;
  for (const memory::MediaSpan& span : request.identity.media) {
    if (span.token_begin < end || span.tokens < 0) return false;
    end = int64_t{span.token_begin} + span.tokens;
  }
  return end <= static_cast<int64_t>(request.tokens.size());
}

// Orders adapters by their first item; the items of one adapter keep their order.
void group_by_adapter(std::vector<StepItem>& items) {
  std::unordered_map<AdapterId, size_t> rank;
  for (const StepItem& item : items) rank.try_emplace(item.request->adapter, rank.size());
  if (rank.size() < 2) return;
  std::ranges::stable_sort(items, {},
                           [&](const StepItem& item) { return rank.at(item.request->adapter); });
}

int64_t media_tokens(const Request& request) {
  int64_t sum = 0;
  for (const memory::MediaSpan& span : request.identity.media) sum += span.tokens;
  return sum;
}

// Relative to the KV of as many blocks, the share of computation that a checkpoint must save per
// block it takes: 1 in this many.
constexpr int kLeastShare = 8;
// Tokens at a prompt's end that the conversation's next turn may not repeat: the start of the
// assistant's turn, such as a thought.
constexpr int kTurnBegin = 8;

}  // namespace

Scheduler::Scheduler(SchedulerConfig config, memory::Pool& pool, std::unique_ptr<Policy> policy,
                     const Clock& clock)
    : config_(std::move(config)),
      pool_(pool),
      policy_(std::move(policy)),
      clock_(clock),
      costs_(config_.costs) {
  weights_.in_place = config_.merge_in_place;
  config_.max_num_batched_tokens = std::max(1, config_.max_num_batched_tokens);
  config_.max_num_seqs = std::clamp(config_.max_num_seqs, 1, config_.max_num_batched_tokens);
}

Status Scheduler::add(std::shared_ptr<Request> request) {
  if (request->tokens.empty()) return invalid("the request has no tokens");
  if (request->state != RequestState::kWaiting || request->computed_tokens != 0 ||
      !request->table.blocks.empty()) {
    return internal(fmt::format("request {} was added to the scheduler twice", request->id));
  }
  if (!media_in_order(*request))
    return internal("the request's media spans are not ascending within its tokens");
  const auto needed = static_cast<int64_t>(request->tokens.size()) + 1;
  const int64_t room = pool_.max_tokens(request->identity.adapters);
  if (needed > room)
    return invalid(
        fmt::format("the request needs {} tokens, but the pool holds {}{}", needed, room,
                    request->identity.adapters.empty() ? "" : " once its adapters are loaded"));
  waiting_.push(std::move(request));
  return {};
}

StepPlan Scheduler::plan(const MediaReady& media) {
  culprit_ = nullptr;
  pool_.advance();
  Step step;
  {
    const Requeue in_any_case{*this, step};
    fill(step, media);
  }
  culprit_ = nullptr;
  list_preparing(step.plan);
  keep_others_exact(step);
  claim_merged_adapter(step);
  group_by_adapter(step.plan.items);
  if (!step.plan.items.empty()) finalize_shape(step.plan);
  step.plan.waits_for_copies = step.plan.items.empty() && !step.prepares && pool_.moving();
  return std::move(step.plan);
}

void Scheduler::fill(Step& step, const MediaReady& media) {
  begin_step(step, media, clock_.now());
  lacks_memory_ = false;
  for (size_t i = 0; i < step.order.size(); ++i) {
    if (step.budget == 0 || static_cast<int>(step.plan.items.size()) == config_.max_num_seqs) break;
    Request& request = *step.order[i];
    culprit_ = &request;
    if (request.last_plan == plans_ || request.preparing) continue;
    if (request.state == RequestState::kRunning) {
      schedule_running(step, i);
    } else if (request.state == RequestState::kWaiting && !step.short_of_memory) {
      admit(step, request);
    }
  }
  const auto is_stalled = [&] { return step.plan.items.empty() && !step.prepares; };
  if (step.refused && is_stalled()) {
    culprit_ = step.refused;
    force_admit(step, *step.refused);
  }
  if (running_.empty() && step.admitted.empty() && is_stalled()) force_first_request(step);
}

void Scheduler::begin_step(Step& step, const MediaReady& media, TimePoint now) {
  ++plans_;
  step.now = now;
  step.media = &media;
  step.budget = config_.max_num_batched_tokens;
  count_passed(now);
  const std::vector<Request*> running = find_runnable(media, now);
  std::vector<Request*> claimed = claim_waiting(step);
  hold_followers(claimed, now);
  const std::vector<Request*> ready = start_preparing(step, claimed);
  int64_t free_blocks = pool_.available_blocks();  // plus those that ready requests hold
  for (const Request* request : ready)
    free_blocks += static_cast<int64_t>(request->claim.prefix.blocks.size());
  PolicyPlan chosen = policy_->plan({.running = {running.data(), running.size()},
                                     .waiting = {ready.data(), ready.size()},
                                     .contended = waiting_.contended(),
                                     .token_budget = config_.max_num_batched_tokens,
                                     .max_sequences = config_.max_num_seqs,
                                     .free_tokens = free_blocks * memory::kBlockTokens,
                                     .weights = weights_,
                                     .costs = &costs_,
                                     .memory = policy_memory_},
                                    now);
  policy_memory_ = chosen.memory;
  step.plan.mode = mode_ = chosen.mode;
  step.plan.merged = chosen.merged;
  limit_prefill(step, running);
  step.order.reserve(chosen.order.size());
  for (const RequestIndex i : chosen.order) {
    if (i < running.size())
      step.order.push_back(running[i]);
    else if (i - running.size() < ready.size())
      step.order.push_back(ready[i - running.size()]);
  }
  for (const auto& request : running_)
    if (request->preparing) step.order.push_back(request.get());
  step.tail = step.order.size();
  step.placing = true;
  for (const RequestIndex i : chosen.passed)
    passed_.push_back(
        (i < running.size() ? running[i] : ready[i - running.size()])->shared_from_this());
}

void Scheduler::schedule_running(Step& step, size_t position) {
  Request& request = *step.order[position];
  const int tokens = prefill_room(step, request);
  if (tokens <= 0) return;
  while (true) {
    const memory::Room room = pool_.reserve(request.table, request.computed_tokens + tokens);
    if (room == memory::Room::kReserved) break;
    if (drop_kept_states(step)) continue;
    step.short_of_memory = lacks_memory_ = true;
    if (room == memory::Room::kSoon) return;
    if (revoke_last_claim(request)) continue;
    Request* victim = next_victim(step, position);
    // Requests placed earlier will release memory; until then this one keeps its blocks.
    if (!victim) return;
    preempt(step, *victim);
  }
  place(step, request);
}

void Scheduler::admit(Step& step, Request& request) {
  if (!request.claim.ready) return;              // it lost its claim during this plan
  if (prefill_room(step, request) == 0) return;  // it gets a turn in a later step
  if (!fits(step, request)) {
    step.short_of_memory = true;
    step.refused = &request;
    return;
  }
  reserve_more(step.admitted);
  reserve_more(running_, step.admitted.size() + 1);
  const int tokens = static_cast<int>(request.tokens.size());
  const memory::Room room =
      pool_.start(request.claim, request.table, request.identity, request.block_keys, tokens);
  if (room != memory::Room::kReserved) {
    step.short_of_memory = true;
    if (room == memory::Room::kNone) step.refused = &request;
    return;
  }
  const int cached = request.table.committed * memory::kBlockTokens;
  request.state = RequestState::kRunning;
  waiting_.admit(request);
  request.computed_tokens = request.cached_from = cached;
  if (!request.scheduled_once) {
    request.scheduled_once = true;
    request.first_scheduled = step.now;
    request.cached_tokens = std::min(cached, request.prompt_tokens);
  }
  step.admitted.push_back(request.shared_from_this());
  request.advanced = step.now;
  request.preparing = waits_for_media(request, *step.media);
  step.prepares |= request.preparing;
  if (step.placing && !request.preparing) place(step, request);
}

// True if there is room for all its known tokens, one more block per running request, and
// `reserved` blocks.
bool Scheduler::fits(const Step& step, const Request& request, int64_t reserved) const {
  const size_t running = running_.size() + step.admitted.size() - step.preempted.size();
  const int32_t blocks = pool_.blocks_to_start(request.identity, request.block_keys,
                                               static_cast<int>(request.tokens.size()));
  return blocks + reserved + static_cast<int64_t>(running) <= pool_.available_blocks();
}

// Used when waiting requests, or running ones that the policy left out, hold all memory: they must
// give it up, since otherwise nothing would run.
void Scheduler::force_admit(Step& step, Request& request) {
  while (!fits(step, request)) {
    if (revoke_last_claim(request)) continue;
    Request* victim = youngest_idle(nullptr);
    if (!victim) return;
    preempt(step, *victim);
  }
  admit(step, request);
}

void Scheduler::place(Step& step, Request& request) {
  const int tokens = prefill_room(step, request);
  if (tokens == 0) return;  // no time left for the tokens after its cached prefix
  count_prefill(step, request, tokens);
  request.last_plan = plans_;
  request.last_scheduled = request.advanced = step.now;
  StepItem item{
      .request = &request, .tokens = tokens, .yields = tokens == request.remaining_tokens()};
  if (pool_.state_blocks() > 0)
    keep_states(step, item);
  else if (config_.proposer)
    add_drafts(step, item);
  const bool all = request.scores_prompt && request.computed_tokens < request.prompt_tokens;
  item.scored = all ? tokens : item.yields ? 1 + static_cast<int>(item.drafts.size()) : 0;
  step.plan.total_tokens += item.tokens;
  step.budget -= item.tokens;
  step.plan.items.push_back(std::move(item));
}

// True if running, but not in this plan.
bool Scheduler::is_idle(const Request& request) const {
  return request.state == RequestState::kRunning && request.last_plan != plans_;
}

// The last idle request in the order after `position`. While the plan is empty, an idle request
// that the policy left out also qualifies.
Request* Scheduler::next_victim(Step& step, size_t position) const {
  const Request* self = step.order[position];
  while (step.tail > position + 1) {
    Request* candidate = step.order[--step.tail];
    if (candidate != self && is_idle(*candidate)) return candidate;
  }
  return step.plan.items.empty() ? youngest_idle(self) : nullptr;
}

// The idle request that was admitted last.
Request* Scheduler::youngest_idle(const Request* except) const {
  for (auto it = running_.rbegin(); it != running_.rend(); ++it) {
    if (it->get() != except && is_idle(**it)) return it->get();
  }
  return nullptr;
}

void Scheduler::preempt(Step& step, Request& victim) {
  step.preempted.push_back(victim.shared_from_this());
  pool_.release(victim.table);
  pool_.unclaim(victim.claim);
  waiting_.leave(victim);
  victim.state = RequestState::kWaiting;
  victim.preparing = false;
  victim.computed_tokens = 0;
  ++victim.preemptions;
  ++preemptions_;
}

void Scheduler::requeue(const Step& step) {
  if (!step.admitted.empty()) {
    waiting_.erase_running(window_.size());
    std::erase_if(window_,
                  [](const Request* request) { return request->state == RequestState::kRunning; });
    running_.insert(running_.end(), step.admitted.begin(), step.admitted.end());
  }
  if (!step.preempted.empty()) {
    std::erase_if(running_,
                  [](const auto& request) { return request->state == RequestState::kWaiting; });
  }
  for (const auto& request : step.preempted) waiting_.push(request);
}

void Scheduler::complete(const StepPlan& plan) {
  pool_.note_step(static_cast<int>(plan.items.size()));
  for (const StepItem& item : plan.items) {
    Request& request = *item.request;
    if (request.state != RequestState::kRunning) continue;  // finished while the step ran
    request.computed_tokens += item.tokens - item.rejected;
    if (!item.drafts.empty()) record_drafts(item);
    if (pool_.prefix_caching()) share(item);
  }
}

void Scheduler::share(const StepItem& item) {
  Request& request = *item.request;
  try {
    memory::extend_block_keys(request.identity, request.tokens, request.block_keys);
    pool_.commit(request.table, request.identity, request.block_keys, request.computed_tokens);
  } catch (const std::bad_alloc&) {  // the next commit() continues from here
  }
  if (pool_.state_blocks() > 0)
    pool_.record_state(request.table, request.computed_tokens - item.tokens, item.kept);
}

void Scheduler::finish(Request& request) {
  if (request.state == RequestState::kFinished) return;
  const std::shared_ptr<Request> alive = request.shared_from_this();
  const bool running = request.state == RequestState::kRunning;
  if (running) record_step_end(clock_.now());
  pool_.release(request.table);
  pool_.unclaim(request.claim);
  request.computed_tokens = 0;
  request.state = RequestState::kFinished;
  if (running) {
    waiting_.leave(request);
    std::erase(running_, alive);
  } else {
    waiting_.erase(request);
    std::erase(window_, &request);
  }
}

SchedulerStats Scheduler::stats() const {
  return {static_cast<int>(running_.size()),
          static_cast<int>(waiting_.size()),
          preemptions_,
          early_aborts_,
          grants_,
          drafts_,
          draft_tokens_,
          accepted_drafts_};
}

// ---- requests whose tokens wait for images and videos to be encoded ----

// The cached prefix of a waiting request is not known yet, so it may need fewer media in the end.
bool Scheduler::waits_for_media(const Request& request, const MediaReady& media) const {
  if (!media || !has_pending_media(request)) return false;
  const int tokens = std::min(request.remaining_tokens(), config_.max_num_batched_tokens);
  return !media(request, request.computed_tokens, request.computed_tokens + tokens);
}

// The running requests that a policy may choose from, in order of admission.
std::vector<Request*> Scheduler::find_runnable(const MediaReady& media, TimePoint now) {
  std::vector<Request*> runnable;
  runnable.reserve(running_.size());
  for (const auto& request : running_) {
    if (request->preparing) request->advanced = now;
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
  for (const StepItem& item : plan.items)
    if (has_pending_media(*item.request, item.tokens))
      plan.preparing.push_back({.request = item.request,
                                .tokens = std::min(item.request->remaining_tokens(),
                                                   item.tokens + config_.max_num_batched_tokens)});
}

// ---- states that a step keeps as checkpoints, for later requests with the same prefix ----

// Keeps a state where the stored prefix goes on beyond its last checkpoint, because other sequences
// branch there, and at the end of the last whole block before the prompt's last tokens, for the
// same prompt or one that continues it. Never takes memory that a request waits for.
void Scheduler::keep_states(const Step& step, StepItem& item) {
  Request& request = *item.request;
  if (!pool_.prefix_caching()) return;
  int wanted[BlockTable::kMostKept] = {
      request.table.branch * kBlockTokens,
      (request.prompt_tokens - 1 - kTurnBegin) / kBlockTokens * kBlockTokens};
  std::ranges::sort(wanted);
  const int least = std::max(1, pool_.state_blocks() / kLeastShare) * kBlockTokens;
  // Where the request started, or its last checkpoint.
  int last = request.cached_from;
  for (const int tokens : wanted) {
    if (tokens - last < least) continue;
    last = tokens;
    const int rows = tokens - request.computed_tokens;
    if (rows > 0 && rows <= item.tokens) item.kept.push_back(rows);
  }
  if (step.short_of_memory || lacks_memory_) item.kept.clear();
  // If there is room for fewer, keep the first ones.
  item.kept.resize(pool_.reserve_checkpoints(request.table, static_cast<int>(item.kept.size())));
}

// Frees kept states for a running request that needs memory. Returns false if the plan keeps none.
bool Scheduler::drop_kept_states(Step& step) {
  bool any = false;
  for (StepItem& item : step.plan.items) {
    if (item.kept.empty()) continue;
    item.kept.clear();
    (void)pool_.reserve_checkpoints(item.request->table, 0);
    any = true;
  }
  return any;
}

}  // namespace valora::scheduler
