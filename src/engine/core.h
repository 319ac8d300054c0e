// All that the engine thread owns: scheduler, KV cache, runner, the requests under way. One step at
// a time.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "engine/runner.h"
#include "engine/sequence.h"
#include "memory/kv_cache.h"
#include "scheduler/scheduler.h"

namespace valora {

struct CoreConfig {
  scheduler::SchedulerConfig scheduler;
  int max_model_len = 0;
  int32_t kv_blocks = 0;
  bool prefix_caching = true;
};

// What the outside is told as requests move on.
struct CoreEvents {
  std::function<void()> started;  // a request left the queue (or ended in it)
  std::function<void(RequestHandle)> ended;
};

class EngineCore {
 public:
  EngineCore(CoreConfig config, std::unique_ptr<scheduler::Policy> policy,
             std::unique_ptr<Runner> runner, const Frontend& frontend, const Clock& clock,
             CoreEvents events);

  // Takes a prepared request in, or ends it with an error.
  void admit(std::shared_ptr<ActiveRequest> request, Result<PreparedPrompt> prompt);
  // Ends a request without a word; unknown handles are ignored.
  void cancel(RequestHandle handle);
  // Ends every request with this error.
  void fail_all(const Error& error);
  bool idle() const { return scheduler_.idle(); }

  struct StepReport {
    int tokens = 0;
    int sequences = 0;
    double seconds = 0;
    double overhead_seconds = 0;  // outside encoding, forward pass and sampling
  };
  StepReport step();

  void forget_adapter(const Digest& identity) { cache_.drop_adapter(identity); }
  // The adapters' names are written only where the queues have changed since the last call.
  void fill(EngineStats& stats);

 private:
  Status enqueue(const std::shared_ptr<ActiveRequest>& request,
                 std::shared_ptr<const PreparedPrompt> prompt);
  void announce(const scheduler::StepPlan& plan);
  void drop_failed(scheduler::StepPlan& plan, std::vector<StepOutput> failed);
  std::vector<StepOutput> run(const scheduler::StepPlan& plan);
  void handle(StepOutput& output);
  void handle_token(Sequence& sequence, const SampledToken& token);
  void handle_classification(Sequence& sequence, Classification result);
  void end_sequence(Sequence& sequence);
  void fail(ActiveRequest& request, const Error& error);
  void release(ActiveRequest& request);

  CoreConfig config_;
  const Frontend& frontend_;
  const Clock& clock_;
  CoreEvents events_;
  memory::KvCache cache_;
  scheduler::Scheduler scheduler_;
  std::unique_ptr<Runner> runner_;
  std::unordered_map<RequestHandle, std::shared_ptr<ActiveRequest>> active_;
  scheduler::RequestId next_sequence_ = 1;
  bool queues_changed_ = false;
};

}  // namespace valora
