// Iteration-level scheduler: each step combines decodes and prefill chunks in one flat batch,
// limited in tokens and sequences. If memory runs out, requests are preempted and recomputed later.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "scheduler/costs/draft_costs.h"
#include "scheduler/policies/policy.h"
#include "scheduler/proposer.h"
#include "scheduler/request.h"
#include "scheduler/step_plan.h"
#include "scheduler/waiting_queue.h"

namespace valora::memory {
class Pool;
}

namespace valora::scheduler {

struct SchedulerConfig {
  int max_num_seqs = 64;              // per step; capped at max_num_batched_tokens
  int max_num_batched_tokens = 2048;  // per step
  // While requests decode, a step takes only as many tokens of prompts without and with media as
  // fit into these times, or into kGapSteps steps without prompts if that is more. 0: no limit.
  double max_decode_gap = 0, max_media_gap = 0;  // seconds
  // How long other requests may overtake one that does not run because its adapters have no room.
  Duration patience = std::chrono::seconds(1);
  StepCosts costs;              // policies compare modes by these
  bool merge_in_place = false;  // merging overwrites the base weights
  // Requests that must wait for their media to be encoded are admitted up to this number of media
  // tokens; the last one may exceed it.
  int max_preparing_tokens = 4096;
  // Fail a waiting request as soon as its first token cannot meet its deadline: in first-come,
  // first-served order it would be late (S-LoRA, appendix B).
  bool early_abort = false;
  // Guesses the next tokens of decoding requests; null: no guesses.
  std::shared_ptr<const Proposer> proposer;
};

// True if tokens [begin, end) of a request can run now: their images and videos have been encoded,
// or cannot be.
using MediaReady = std::function<bool(const Request& request, int begin, int end)>;

struct SchedulerStats {
  int running = 0;
  int waiting = 0;
  uint64_t preemptions = 0;
  uint64_t early_aborts = 0;
  uint64_t grants = 0;  // claims of waiting requests that became ready
  // Requests that had guesses in a step, their guessed tokens, and the correct ones.
  uint64_t drafts = 0, draft_tokens = 0, right_drafts = 0;
};

// Counts of waiting requests considered by the last plan, by the resource they wait for.
struct Waits {
  int adapters = 0;  // loading
  int kv = 0;        // loading
  int room = 0;      // no memory
  int turn = 0;      // only their turn, or not allowed to claim yet
  int claims = 0;    // how many hold adapters or KV
};

// Memory: a waiting request first claims its adapters, and its KV in the swap space; until they are
// in the pool, it is loading and others run. It is admitted only if all its known tokens fit, plus
// one more block per running request, so that a prefill never waits for memory. Later it grows
// block by block. If no block is left, waiting requests lose their claims, the last one first; then
// requests at the end of the policy's order are preempted: they release their blocks and adapters,
// keep their tokens, and wait before all requests that were never preempted. Their full blocks stay
// in the pool as history, which the pool keeps, swaps out or drops by cost.
//
// Drafts: a decoding request may run guesses of its next tokens in the same step, as many as are
// worth their time. Correct guesses count as computed. Drafts preempt nobody for their memory, and
// take no place in the step that a request could have.
//
// Media: a request whose images are not encoded is admitted in its turn, with its memory, and then
// prepares: policies do not see it, so it delays no step, and it is the first to be preempted.
// Later requests may overtake it, but none may take the memory it waits for.
//
// Prefixes: a ready request waits while another one computes tokens that both begin with, unless
// that one is less urgent or does not advance. So the pool stores them once, and each request that
// follows takes them from there.
//
// No sequence may have more than Pool::max_tokens(its adapters) tokens, since no preemption could
// make room for it. The engine limits answers accordingly; check() reports violations.
//
// Not thread-safe: only the engine thread uses it. The scheduler shares ownership of its requests
// until finish(). A caller that finishes a request between plan() and complete() must keep it alive
// until complete() returns.
class Scheduler {
 public:
  static constexpr int kGapSteps = 3;     // see SchedulerConfig::max_decode_gap
  static constexpr int kLeastChunk = 16;  // prompt tokens that a step takes regardless of limits

  Scheduler(SchedulerConfig config, memory::Pool& pool, std::unique_ptr<Policy> policy,
            const Clock& clock);

  // Appends a request to the waiting queue, whose length callers must bound. kInvalidArgument: no
  // tokens, or its tokens plus one exceed Pool::max_tokens(). kInternal: already added, or its
  // media spans are not ascending within its tokens.
  Status add(std::shared_ptr<Request> request);
  // Collects finished copies and plans the next step. The plan has no items only if there is no
  // request, the policy lets none run, or all wait for copies. The caller finishes failed requests.
  // A plan need not be run. std::bad_alloc leaves the queues consistent: the next plan starts from
  // scratch. Only add() and plan() allocate.
  StepPlan plan(const MediaReady& media = {});
  // After plan() has thrown: the request that needed the memory, which must then be finished; null:
  // the plan as a whole did.
  Request* culprit() const { return culprit_; }
  // The running request that was admitted last, else a waiting one; null: idle().
  Request* last() const { return running_.empty() ? waiting_.last() : running_.back().get(); }
  // Call after the step ran, before new tokens are appended and before the next plan(). Counts the
  // step's tokens as computed, except rejected ones, and shares full blocks through the prefix
  // cache. If it lacks memory to share some, they follow after the next step.
  void complete(const StepPlan& plan);
  // Forgets the merged adapter. Call while idle; the executor must forget it, too.
  void forget_merged();
  // Charges the time of a step to the tenants of its requests, none of which may have ended since.
  void charge(const StepPlan& plan, Duration time);
  // Records the time to plan, run and complete a step, which corrects the costs of steps and of
  // prefill. The plan's requests need not exist any more.
  void note_step(const StepPlan& plan, Duration time);
  // Removes a request in any state and releases its memory. No effect if it is already finished.
  void finish(Request& request);

  Mode mode() const { return mode_; }  // mode of the last plan
  const LiveCosts& costs() const { return costs_; }
  bool idle() const { return running_.empty() && waiting_.empty(); }
  const memory::Pool& pool() const { return pool_; }
  SchedulerStats stats() const;
  Waits waits() const;
  // Waiting requests and the merged adapter return their claims. The next plan claims them again.
  void release_claims();
  // Seconds of steps that a tenant has received.
  double service(TenantId tenant) const { return waiting_.service(tenant); }
  // The queues, in the orders of PolicyState. For metrics and tests.
  const std::vector<std::shared_ptr<Request>>& running() const { return running_; }
  std::vector<Request*> waiting() const { return waiting_.first(waiting_.size()); }
  // Checks the invariants of scheduler and memory. Returns an empty string, or the first violation.
  // For tests.
  std::string check() const;

 private:
  struct Step;
  struct Requeue;

  // Number of waiting requests that a plan considers: enough to fill a step, however long the
  // queue.
  size_t window_size() const { return std::max<size_t>(256, 4 * config_.max_num_seqs); }
  void fill(Step& step, const MediaReady& media);
  void begin_step(Step& step, const MediaReady& media, TimePoint now);
  // Media.
  bool waits_for_media(const Request& request, const MediaReady& media) const;
  std::vector<Request*> find_runnable(const MediaReady& media, TimePoint now);
  std::vector<Request*> start_preparing(Step& step, const std::vector<Request*>& ready);
  void list_preparing(StepPlan& plan) const;
  // Costs (scheduler_costs.cc).
  void count_passed(TimePoint now);
  void keep_others_exact(Step& step);
  void finalize_shape(StepPlan& plan);
  double price(const StepItem& item) const;
  double prefill_seconds(int tokens) const;
  double running_prefill() const;
  // Gaps (scheduler_costs.cc).
  double gap_bound(const Request& request) const;  // seconds; 0: none
  bool bounds_gaps() const;
  void limit_prefill(Step& step, std::span<Request* const> running) const;
  int prefill_room(const Step& step, const Request& request) const;
  int prefill_within_bound(const Step& step, const Request& request, int most) const;
  static void count_prefill(Step& step, const Request& request, int tokens);
  void record_gap(const StepPlan& plan, double seconds);
  void record_step_end(TimePoint now);
  // Drafts (scheduler_costs.cc).
  void add_drafts(Step& step, StepItem& item);
  double acceptance_rate(const Request& request) const;
  int worthwhile(const Step& step, const Request& request, int drafts) const;
  void record_drafts(const StepItem& item);
  void record_draft_rows(const StepPlan& plan, double seconds);
  struct Ahead;
  struct Asked;
  bool misses_target(Request& request, Ahead& ahead, TimePoint now);
  // Claims (scheduler_claims.cc).
  void update_window();
  std::vector<Request*> claim_waiting(Step& step);
  bool may_ask(const Request& request, Asked& asked) const;
  void ask(Step& step, Request& request, Asked& asked);
  memory::Readiness claim(Request& request);
  memory::Readiness force_claim(Request& request);
  void force_first_request(Step& step);
  // Shared prefixes (scheduler_prefix.cc).
  void hold_followers(std::vector<Request*>& ready, TimePoint now);
  bool follows(const Request& request, std::span<const Request* const> leaders, TimePoint now);
  bool is_advancing(const Request& leader, TimePoint now) const;
  bool revoke_last_claim(const Request& before);
  void claim_merged_adapter(Step& step);
  void schedule_running(Step& step, size_t position);
  void admit(Step& step, Request& request);
  void force_admit(Step& step, Request& request);
  bool fits(const Step& step, const Request& request, int64_t reserved = 0) const;
  void place(Step& step, Request& request);
  bool is_idle(const Request& request) const;
  Request* next_victim(Step& step, size_t position) const;
  Request* youngest_idle(const Request* except) const;
  void preempt(Step& step, Request& victim);
  void requeue(const Step& step);
  void share(const StepItem& item);
  // States.
  void keep_states(const Step& step, StepItem& item);
  bool drop_kept_states(Step& step);
  std::string check_request(const Request& request) const;

  SchedulerConfig config_;
  memory::Pool& pool_;
  std::unique_ptr<Policy> policy_;
  const Clock& clock_;
  std::vector<std::shared_ptr<Request>> running_;  // by admission
  WaitingQueue waiting_;
  // The waiting requests considered by the last plan, in order. No other waiting request holds a
  // claim.
  std::vector<Request*> window_;
  Request* culprit_ = nullptr;
  uint64_t plans_ = 0;
  uint64_t preemptions_ = 0;
  uint64_t early_aborts_ = 0;
  uint64_t grants_ = 0;
  uint64_t drafts_ = 0, draft_tokens_ = 0, accepted_drafts_ = 0;
  // By adapter: the share of correct guesses with which new requests start. Tasks differ in how
  // much answers repeat.
  std::unordered_map<AdapterId, double> acceptance_rates_;
  DraftCosts draft_costs_;
  TimePoint last_end_{};     // last end of a running request while no place was free
  double end_interval_ = 0;  // seconds between such ends, moving average
  Mode mode_ = Mode::kUnmerged;
  WeightsInUse weights_;
  LiveCosts costs_;
  // Logarithms of measured step time over its estimate from config_.costs: for decode-only steps,
  // and for steps of decodes and prompts. The latter are assumed slow at first.
  static constexpr double kFirstMixed = 4, kMostMixed = 16;
  double log_decode_ = 0, log_mixed_ = std::log(kFirstMixed);
  PolicyMemory policy_memory_;
  std::vector<std::shared_ptr<Request>> passed_;  // left out by the last plan, since passed_at_
  TimePoint passed_at_{};
  // The merged adapter stays in the pool, because mixture mode subtracts it from other requests.
  AdapterId merged_ = kBaseModel;
  // The adapter that was last planned to be merged, and its Request::merges_among_others.
  std::pair<AdapterId, bool> mixes_{kBaseModel, false};
  memory::Claim merged_claim_;
  // A running request, or the first waiting one if none ran, got no memory in the last plan.
  bool lacks_memory_ = false;
};

}  // namespace valora::scheduler
