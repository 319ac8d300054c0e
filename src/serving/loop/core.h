// The engine thread's state: scheduler, memory pool and the requests that are admitted, each with
// at least one sequence in the scheduler. Not thread-safe; only the engine thread calls these
// functions. If an allocation fails, expect(), pin(), forget_adapter(), poll_memory(), fill() and
// check() throw std::bad_alloc and change nothing; the others end requests, which does not
// allocate.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/stats.h"
#include "base/clock.h"
#include "memory/pool.h"
#include "scheduler/step_loop.h"
#include "serving/model_runner.h"
#include "serving/sequence.h"

namespace valora::serving {

struct CoreConfig {
  scheduler::SchedulerConfig scheduler;
  int max_model_len = 0;
  memory::PoolConfig pool;
  double copy_bandwidth = 0;  // bytes/s of copies to the pool and from it; 0: no limit
};

// Called on the engine thread as a request changes state.
struct CoreEvents {
  std::function<void()> started;  // a request was first scheduled, or ended before that
  std::function<void(RequestHandle)> ended;
};

class EngineCore final : scheduler::StepListener {
 public:
  // runner, listener, frontend and clock must outlive the core.
  EngineCore(CoreConfig config, std::unique_ptr<scheduler::Policy> policy, ModelRunner& runner,
             std::unique_ptr<memory::Mover> mover, memory::PoolListener& listener,
             const Frontend& frontend, const Clock& clock, CoreEvents events);

  // Adds a prepared request to the scheduler. On an error, the request ends and its sink gets the
  // error.
  void admit(const std::shared_ptr<ActiveRequest>& request);
  // Ends a request; its sink is not called. No effect before it is admitted.
  void cancel(ActiveRequest& request);
  // Ends every request with this error.
  void fail_all(const Error& error);
  bool idle() const { return scheduler_.idle(); }

  scheduler::StepReport step() { return loop_.step(); }
  scheduler::Progress progress() const { return loop_.progress(); }
  // The resources that waiting requests lack and hold, for diagnosing a stall.
  scheduler::Waits waits() const { return scheduler_.waits(); }
  void release_claims() { scheduler_.release_claims(); }
  // Collects finished copies, lets the pool plan new ones, and drops data of requests that are
  // gone. step() includes this.
  void poll_memory() {
    pool_.advance();
    if (idle()) runner_.on_idle();
  }
  // True if poll_memory() will have work later even if no request arrives.
  bool has_pending_memory_work() const { return pool_.has_pending_work(); }

  // Requests may use this adapter from now on.
  void expect(const LoadedAdapter& adapter) { runner_.expect_adapter(adapter); }
  std::string warm_up() { return runner_.warm_up(); }
  bool prepare_ahead() { return runner_.prepare_ahead(); }
  // Loads adapters ahead of the request that will need them, if there is room.
  void expect(std::span<const memory::AdapterNeed> needs);
  // Returns whether this call pinned it. kUnavailable: no more room for pinned adapters.
  Result<bool> pin(const memory::AdapterNeed& need);
  void unpin(const memory::AdapterNeed& need) { (void)pool_.keep(need, false); }
  void forget_adapter(const Digest& content) { pool_.forget(content); }
  // Forgets the merged adapter. Only while idle().
  void forget_merged() {
    runner_.forget_merged();
    scheduler_.forget_merged();
  }
  // Total time spent merging and restoring.
  double merge_seconds() const { return runner_.merge_seconds(); }
  // Scheduler::check(). For tests.
  std::string check() const { return scheduler_.check(); }
  // Fills in the fields that the core knows. Rebuilds the lists of adapter names only if the queues
  // have changed since the last call.
  void fill(EngineStats& stats);

 private:
  void fill_memory(EngineStats& stats) const;
  scheduler::TenantId tenant_of(const std::string& name);
  Status enqueue(const std::shared_ptr<ActiveRequest>& request,
                 std::shared_ptr<const PreparedPrompt> prompt);
  void tokenized(ActiveRequest& request, std::vector<int32_t> tokens);
  void on_planned(const scheduler::StepPlan& plan) override;
  void start(const scheduler::Request& scheduled);
  void on_output(scheduler::StepOutput& output) override;
  void answer(scheduler::StepOutput& output);
  void on_failed(scheduler::Request& request, const Error& error) override;
  void handle_token(Sequence& sequence, const scheduler::SampledToken& token);
  void handle_classification(Sequence& sequence, Classification result);
  void end_sequence(Sequence& sequence);
  void fail(ActiveRequest& request, const Error& error);
  void admit_prepared(const std::shared_ptr<ActiveRequest>& request);
  void release(ActiveRequest& request);
  Result<int> room_for(const PreparedPrompt& prompt) const;

  CoreConfig config_;
  const Frontend& frontend_;
  const Clock& clock_;
  CoreEvents events_;
  std::unique_ptr<memory::Mover> mover_;
  memory::Pool pool_;
  scheduler::Scheduler scheduler_;
  ModelRunner& runner_;
  scheduler::StepLoop loop_;
  scheduler::RequestId next_sequence_ = 1;
  std::map<std::string, scheduler::TenantId> tenants_;
  bool queues_changed_ = false;
};

}  // namespace valora::serving
