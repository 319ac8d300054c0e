// Iteration-level batching: each step takes decodes and prefill chunks into one flat batch under a token
// budget and a sequence limit; memory pressure preempts, later recomputes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "memory/kv_cache.h"
#include "scheduler/policy.h"
#include "scheduler/request.h"

namespace valora::scheduler {

struct SchedulerConfig {
  int max_num_seqs = 64;
  int max_num_batched_tokens = 2048;
  int max_waiting = 1024;
};

// One request's part of a step: tokens [computed, computed + tokens) of it are run.
struct StepItem {
  Request* request = nullptr;
  int tokens = 0;
  bool yields = false;  // the run reaches its last known token: the step gives its next one (or its label)
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

// Not thread-safe: the engine thread owns it. Holds shared ownership of its requests until finish().
class Scheduler {
 public:
  Scheduler(SchedulerConfig config, memory::KvCache& cache, std::unique_ptr<Policy> policy, const Clock& clock);

  // kQueueFull beyond max_waiting; kInvalidArgument for a request that could never fit in memory
  // (its tokens so far, plus one) or has no tokens.
  Status add(std::shared_ptr<Request> request);
  // The next step. Empty only when nothing is there to run.
  StepPlan plan();
  // After the step ran: its tokens count as computed and full blocks become shareable. Call before
  // appending new tokens to the requests.
  void complete(const StepPlan& plan);
  // Ends a request in any state (done, cancelled, failed) and gives its memory back.
  void finish(Request& request);

  bool idle() const { return running_.empty() && waiting_.empty(); }
  SchedulerStats stats() const;
  // The requests in each state; for metrics and tests.
  const std::vector<std::shared_ptr<Request>>& running() const { return running_; }
  const std::vector<std::shared_ptr<Request>>& waiting() const { return waiting_; }
  // Empty when the scheduler's and the memory's invariants hold.
  std::string check() const;

 private:
  SchedulerConfig config_;
  memory::KvCache& cache_;
  std::unique_ptr<Policy> policy_;
  const Clock& clock_;
  std::vector<std::shared_ptr<Request>> running_;
  std::vector<std::shared_ptr<Request>> waiting_;
  uint64_t preemptions_ = 0;
  Mode mode_ = Mode::kUnmerged;
  AdapterId merged_ = kBaseModel;
};

}  // namespace valora::scheduler
