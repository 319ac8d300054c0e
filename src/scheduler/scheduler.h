// Iteration-level scheduler: each step takes decodes and prefill chunks into one flat batch,
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
  // fit into these times, or into kGapSteps steps without prompts if that is more. 0: any number.
  double max_decode_gap = 0, max_media_gap = 0;  // seconds
  // How long requests may pass one that came first, because there is no room for its adapters.
  Duration patience = std::chrono::seconds(1);
  StepCosts costs;              // by which policies compare modes
  bool merge_in_place = false;  // merging overwrites the base weights
  // Tokens of media up to which requests are admitted that must wait for their encoding. The last
  // one may exceed it.
  int max_preparing_tokens = 4096;
  // Fail a waiting request as soon as its first token cannot come by its deadline: served first
  // come, first served, it would be late (S-LoRA, appendix B).
  bool early_abort = false;
  // Guesses the next tokens of requests in decode; null: none are guessed.
  std::shared_ptr<const Proposer> proposer;
};

// True if tokens [begin, end) of a request can run now: the embeddings of their images and videos
// are there, or cannot be made.
using MediaReady = std::function<bool(const Request& request, int begin, int end)>;

struct SchedulerStats {
  int running = 0;
  int waiting = 0;
  uint64_t preemptions = 0;
  uint64_t early_aborts = 0;
  uint64_t grants = 0;  // claims of waiting requests that became ready
  // Guessed tokens, those of them that were right, and how often a request had any.
  uint64_t drafts = 0, draft_tokens = 0, right_drafts = 0;
};

// What the waiting requests that the last plan looked at need.
struct Waits {
  int adapters = 0;  // on their way
  int kv = 0;        // on its way
  int room = 0;      // in memory
  int turn = 0;      // nothing but their turn, or they may not ask yet
  int claims = 0;    // of them hold adapters or KV
};

// Memory: a waiting request first claims its adapters, and its KV in the swap space; until they are
// in the pool, it is loading and others run. It is admitted only if all its known tokens fit, and
// one further block per running request, so that a prefill never waits for memory. Later it grows
// block by block. If no block is left, waiting requests lose their claims, the last one first, then
// requests at the end of the policy's order are preempted: they release their blocks and adapters,
// keep their tokens, and wait before all requests that were never preempted. Their full blocks stay
// in the pool as history, which the pool keeps, copies to the swap space or drops by cost.
//
// Drafts: a request in decode may run guesses of its next tokens in the same step, as many as are
// worth their time. Those that the step finds right count as computed. Neither preempts anybody for
// their memory, nor do they take a place of the step that a request could have.
//
// Media: a request whose images are not encoded is admitted in its turn, with its memory, and then
// prepares: policies do not see it, so it delays no step, and it is the first to be preempted.
// Requests behind it pass it, but none takes the memory that it waits for.
//
// No sequence may have more than Pool::max_tokens(its adapters) tokens, since no preemption could
// make room for it. The engine caps the answer to that; check() reports a violation.
//
// Not thread-safe: only the engine thread uses it. The scheduler shares ownership of its requests
// until finish(). A caller that finishes a request between plan() and complete() must keep it alive
// until complete() returns.
class Scheduler {
 public:
  static constexpr int kGapSteps = 3;     // SchedulerConfig::max_decode_gap
  static constexpr int kLeastChunk = 16;  // tokens of prompts that a step takes in any case

  Scheduler(SchedulerConfig config, memory::Pool& pool, std::unique_ptr<Policy> policy,
            const Clock& clock);

  // Appends a request to the waiting queue, which whoever accepts requests bounds.
  // kInvalidArgument: no tokens, or its tokens plus one exceed Pool::max_tokens(). kInternal:
  // added before, or its media spans are not ascending within its tokens.
  Status add(std::shared_ptr<Request> request);
  // Takes finished copies, and makes the next step. No items only if there is no request,
  // if the policy lets none run, or if all wait for copies. The caller finishes failed requests.
  // A plan need not be run, and std::bad_alloc leaves the queues consistent: the next plan starts
  // from scratch. Only add() and plan() need memory.
  StepPlan plan(const MediaReady& media = {});
  // After plan() has thrown: the request that needed the memory, which must be finished; null: the
  // plan as a whole.
  Request* culprit() const { return culprit_; }
  // The running request that was admitted last, or, if none runs, one that waits; null: idle().
  Request* last() const { return running_.empty() ? waiting_.last() : running_.back().get(); }
  // Call after the step ran, before new tokens are appended and before the next plan(). Counts its
  // tokens but the rejected ones as computed, and shares full blocks through the prefix cache.
  // Those that it has no memory to share follow after the next step.
  void complete(const StepPlan& plan);
  // As if no adapter had been merged. Call while idle; the executor must forget it, too.
  void forget_merged();
  // The requests of the plan, none of which has ended since, took this time of their tenants'.
  void charge(const StepPlan& plan, Duration time);
  // Making, running and completing the plan took this time: corrects the costs of steps and of
  // prefill. The requests of the plan may be gone.
  void note_step(const StepPlan& plan, Duration time);
  // Removes a request in any state and releases its memory. No effect if it is finished.
  void finish(Request& request);

  Mode mode() const { return mode_; }  // of the last plan
  const LiveCosts& costs() const { return costs_; }
  bool idle() const { return running_.empty() && waiting_.empty(); }
  const memory::Pool& pool() const { return pool_; }
  SchedulerStats stats() const;
  Waits waits() const;
  // Waiting requests and the merged adapter return their claims. The next plan claims again.
  void give_back_claims();
  // Seconds of steps that a tenant was served.
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

  // Waiting requests that a plan looks at: enough for a full step, however long the queue is.
  size_t window_size() const { return std::max<size_t>(256, 4 * config_.max_num_seqs); }
  void fill(Step& step, const MediaReady& media);
  void begin_step(Step& step, const MediaReady& media, TimePoint now);
  // scheduler_media.cc
  bool waits_for_media(const Request& request, const MediaReady& media) const;
  std::vector<Request*> find_runnable(const MediaReady& media);
  std::vector<Request*> start_preparing(Step& step, const std::vector<Request*>& ready);
  void list_preparing(StepPlan& plan) const;
  // scheduler_costs.cc
  void count_passed(TimePoint now);
  void take_shape(StepPlan& plan);
  double price(const StepItem& item) const;
  double prefill_seconds(int tokens) const;
  double running_prefill() const;
  // scheduler_gap.cc
  double gap_bound(const Request& request) const;  // seconds; 0: none
  bool bounds_gaps() const;
  void limit_prefill(Step& step, std::span<Request* const> running) const;
  int prefill_room(const Step& step, const Request& request) const;
  int timely_prefill(const Step& step, const Request& request, int most) const;
  static void count_prefill(Step& step, const Request& request, int tokens);
  void note_gap(const StepPlan& plan, double seconds);
  void note_end(TimePoint now);
  // scheduler_drafts.cc
  void add_drafts(Step& step, StepItem& item);
  double share_of_right(const Request& request) const;
  int worthwhile(const Step& step, const Request& request, int drafts) const;
  void note_drafts(const StepItem& item);
  void note_draft_rows(const StepPlan& plan, double seconds);
  struct Ahead;
  struct Asked;
  bool comes_too_late(Request& request, Ahead& ahead, TimePoint now);
  // scheduler_claims.cc
  void look_at_queue();
  std::vector<Request*> claim_waiting(Step& step);
  bool may_ask(const Request& request, Asked& asked) const;
  void ask(Step& step, Request& request, Asked& asked);
  memory::Readiness claim(Request& request);
  memory::Readiness claim_by_force(Request& request);
  void serve_first(Step& step);
  bool revoke_last_claim(const Request& before);
  void hold_merged(Step& step);
  void place_running(Step& step, size_t position);
  void admit(Step& step, Request& request);
  void admit_by_force(Step& step, Request& request);
  bool fits(const Step& step, const Request& request, int64_t reserved = 0) const;
  void place(Step& step, Request& request);
  bool is_idle(const Request& request) const;
  Request* next_victim(Step& step, size_t position) const;
  Request* youngest_idle(const Request* except) const;
  void preempt(Step& step, Request& victim);
  void requeue(const Step& step);
  void share(const StepItem& item);
  // scheduler_states.cc
  void keep_states(const Step& step, StepItem& item);
  bool give_back_kept(Step& step);
  std::string check_request(const Request& request) const;

  SchedulerConfig config_;
  memory::Pool& pool_;
  std::unique_ptr<Policy> policy_;
  const Clock& clock_;
  std::vector<std::shared_ptr<Request>> running_;  // by admission
  WaitingQueue waiting_;
  // The waiting requests that the last plan looked at, in order. No other one that waits holds a
  // claim.
  std::vector<Request*> window_;
  Request* culprit_ = nullptr;
  uint64_t plans_ = 0;
  uint64_t preemptions_ = 0;
  uint64_t early_aborts_ = 0;
  uint64_t grants_ = 0;
  uint64_t drafts_ = 0, draft_tokens_ = 0, right_drafts_ = 0;
  // Of requests with the adapter, with which new ones begin: tasks differ in how much answers
  // repeat.
  std::unordered_map<AdapterId, double> right_share_;
  DraftCosts draft_costs_;
  TimePoint last_end_{};     // of a running request, if no place was free
  double end_interval_ = 0;  // seconds between such ends, mean of the last ones
  Mode mode_ = Mode::kUnmerged;
  WeightsInUse weights_;
  LiveCosts costs_;
  // Logarithms of what steps take, in their times by config_.costs: steps of decodes alone, and of
  // decodes and prompts. The first of these are taken to be slow.
  static constexpr double kFirstMixed = 4, kMostMixed = 16;
  double log_decode_ = 0, log_mixed_ = std::log(kFirstMixed);
  PolicyMemory policy_memory_;
  std::vector<std::shared_ptr<Request>> passed_;  // by the last plan, since passed_at_
  TimePoint passed_at_{};
  // The merged adapter is kept in the pool: mixture mode subtracts it from other requests.
  AdapterId merged_ = kBaseModel;
  memory::Claim merged_claim_;
  // A running request, or the first one while none ran, got no memory in the last plan.
  bool lacks_memory_ = false;
};

}  // namespace valora::scheduler
