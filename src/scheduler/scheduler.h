// Iteration-level batching: each step takes decodes and prefill chunks into one flat batch under a
// token budget and a sequence limit; memory pressure preempts, later recomputes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "memory/kv_cache.h"
#include "scheduler/policy.h"
#include "scheduler/request.h"

namespace valora::scheduler {

struct SchedulerConfig {
  int max_num_seqs = 64;              // in one step; at most one a token of the budget
  int max_num_batched_tokens = 2048;  // in one step
  int max_waiting = 1024;
};

// One request's part of a step: tokens [computed, computed + tokens) of it are run.
struct StepItem {
  Request* request = nullptr;
  int tokens = 0;
  bool yields =
      false;  // the run reaches its last known token: the step gives its next one (or its label)
};

struct StepPlan {
  Mode mode = Mode::kUnmerged;
  AdapterId merged = kBaseModel;
  std::vector<StepItem> items;  // requests of one adapter side by side
  int total_tokens = 0;
};

struct SchedulerStats {
  int running = 0;
  int waiting = 0;
  uint64_t preemptions = 0;
};

// A request is admitted with memory for all its known tokens at once, so a prefill under way never
// waits for memory; later it grows block by block. Where there is none left, requests at the end of
// the policy's order are preempted: they give up their memory, keep their tokens, and wait before
// all others to be computed again. Nothing is admitted unless each running request could grow by a
// block.
//
// A sequence must never have more than KvCache::max_tokens() tokens, since nothing could make room
// for it: the engine caps the model length to that; check() reports a violation.
//
// Not thread-safe: the engine thread owns it. Holds shared ownership of its requests until
// finish(); one that finishes between plan() and complete() must be kept alive by the caller until
// complete().
class Scheduler {
 public:
  Scheduler(SchedulerConfig config, memory::KvCache& cache, std::unique_ptr<Policy> policy,
            const Clock& clock);

  // kQueueFull beyond max_waiting; kInvalidArgument for a request that could never fit in memory
  // (its tokens so far, plus one) or has no tokens; kInternal for one that is not fresh or whose
  // media spans are not ascending within its tokens.
  Status add(std::shared_ptr<Request> request);
  // The next step. Empty only when nothing is there to run (or the policy lets nothing run).
  StepPlan plan();
  // After the step ran: its tokens count as computed and full blocks become shareable. Call before
  // appending new tokens to the requests, and before the next plan().
  void complete(const StepPlan& plan);
  // Ends a request in any state (done, cancelled, failed) and gives its memory back. Again: no
  // effect.
  void finish(Request& request);

  Mode mode() const { return mode_; }  // of the last plan
  bool idle() const { return running_.empty() && waiting_.empty(); }
  SchedulerStats stats() const;
  // The requests in each state, in the orders of PolicyState; for metrics and tests.
  const std::vector<std::shared_ptr<Request>>& running() const { return running_; }
  const std::vector<std::shared_ptr<Request>>& waiting() const { return waiting_; }
  // Empty when the scheduler's and the memory's invariants hold.
  std::string check() const;

 private:
  struct Step;

  Step begin_step(TimePoint now);
  void place_running(Step& step, size_t position);
  void admit(Step& step, Request& request, TimePoint now);
  void admit_by_force(Step& step, Request& request, TimePoint now);
  bool fits(const Step& step, const Request& request) const;
  void place(Step& step, Request& request) const;
  bool is_idle(const Request& request) const;
  Request* next_victim(Step& step, size_t position) const;
  Request* youngest_idle(const Request* except) const;
  void preempt(Step& step, Request& victim);
  void requeue(const Step& step);
  std::string check_request(const Request& request) const;

  SchedulerConfig config_;
  memory::KvCache& cache_;
  std::unique_ptr<Policy> policy_;
  const Clock& clock_;
  std::vector<std::shared_ptr<Request>> running_;  // in the order of admission
  std::vector<std::shared_ptr<Request>>
      waiting_;  // preempted ones by arrival, then the others as they came
  uint64_t plans_ = 0;
  uint64_t preemptions_ = 0;
  Mode mode_ = Mode::kUnmerged;
  AdapterId merged_ = kBaseModel;
};

}  // namespace valora::scheduler
