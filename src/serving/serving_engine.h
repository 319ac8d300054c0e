// Implements LocalEngine: client threads submit requests, workers prepare prompts and load
// adapters, and one engine thread runs the steps. Contracts: api/engine.h, serving/local_engine.h.
// The tensor side is behind serving/model_side.h.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "api/options.h"
#include "base/threads/fair_pool.h"
#include "scheduler/progress_watch.h"
#include "serving/adapters/adapter_table.h"
#include "serving/core.h"
#include "serving/local_engine.h"
#include "serving/model_side.h"
#include "serving/prompts/prompt_workers.h"
#include "serving/sampling/form_workers.h"
#include "serving/sampling/request_seeds.h"

namespace valora::serving {

// The components of an engine other than its threads.
struct EngineParts {
  std::unique_ptr<ModelSide> model;
  std::unique_ptr<Frontend> frontend;
  std::unique_ptr<scheduler::Policy> policy;
  CoreConfig core;
  ModelCard card;
  CostKey cost_key;
  std::vector<std::string> notes;
};

class ServingEngine final : public LocalEngine {
 public:
  // Starts the threads. options: as used to create the parts. clock must outlive the engine. Throws
  // std::bad_alloc.
  ServingEngine(const EngineOptions& options, EngineParts parts, const Clock& clock);
  // Ends running requests with kCancelled.
  ~ServingEngine() override;

  // Prepares for the likeliest steps (ModelRunner::warm_up) and adds its note to notes(). Called
  // once, before the first request. Throws what ended the engine.
  void warm_up();

  const ModelCard& model() const override { return card_; }
  Result<RequestHandle> submit(GenerateRequest request,
                               std::shared_ptr<ResponseSink> sink) override;
  void cancel(RequestHandle handle) override;
  void load_adapter(LoadAdapter request, std::function<void(Result<AdapterCard>)> done) override;
  void unload_adapter(std::string name, std::optional<uint64_t> expected_generation,
                      std::function<void(Status)> done) override;
  void pin_adapter(std::string name, bool pinned, std::optional<uint64_t> expected_generation,
                   std::function<void(Status)> done) override;
  std::vector<AdapterCard> adapters() const override;
  std::optional<AdapterCard> adapter(const std::string& name) const override;
  Result<std::vector<int32_t>> tokenize(
      const Prompt& prompt, bool add_special_tokens,
      const std::vector<AdapterUse>& adapters = {}) const override;
  Result<std::string> detokenize(const std::vector<int32_t>& ids,
                                 const std::vector<AdapterUse>& adapters = {}) const override;
  EngineStats stats() const override;
  void set_observer(StepObserver* observer) override;
  bool healthy() const override { return healthy_; }
  std::string standstill() const override;
  void drain(std::function<void()> done) override;

  void start_watchdog(Duration timeout) override;
  void set_step_probe(StepProbe probe) override;
  void forget_merged() override;
  CostKey cost_key() const override { return cost_key_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  std::string check() override;

 private:
  // kNotFound: an adapter does not exist.
  Result<std::vector<AppliedAdapter>> applied(const std::vector<AdapterUse>& uses) const;
  Result<std::shared_ptr<ActiveRequest>> make_request(GenerateRequest request,
                                                      std::shared_ptr<ResponseSink> sink);
  Status accept(const std::shared_ptr<ActiveRequest>& request);
  void undo_accept(const ActiveRequest& request);
  std::shared_ptr<ActiveRequest> accepted(RequestHandle handle);
  void prepare(const std::shared_ptr<ActiveRequest>& request);
  void begin_grammar(const std::shared_ptr<ActiveRequest>& request);
  void prepared(const std::shared_ptr<ActiveRequest>& request);
  void stop_preparing();
  Result<AdapterCard> load_sync(const LoadAdapter& request);
  // Serves what was read under the request's name.
  Result<AdapterCard> serve_adapter(const LoadAdapter& request, const AdapterBackend::Read& read);
  Result<AdapterCard> try_load(const LoadAdapter& request);
  Status try_unload(const std::string& name, std::optional<uint64_t> expected_generation);
  Status check_room(const LoadedAdapter& adapter) const;
  Status try_pin(const std::string& name, bool pinned, std::optional<uint64_t> expected_generation);
  Result<AdapterCard> add_name(const LoadAdapter& request);
  Result<bool> pin(const memory::AdapterNeed& need);
  // Drops the contents' KV and their places in the pool.
  void forget(const std::vector<Digest>& contents);
  // Pins all of them or none. Contents pinned under another name stay pinned.
  Status pin_all(const std::vector<memory::AdapterNeed>& needs);
  void unpin_if_free(const std::vector<memory::AdapterNeed>& needs);
  void copied();
  void add_residency(AdapterCard& card) const;
  bool has_work() const;
  Status accepting() const;
  void post(std::function<void(EngineCore&)> command);
  void hand_over(EngineCommands& commands);
  // For commands that nothing depends on: dropped if memory runs out.
  template <typename Command>
  void post_best_effort(Command command) {
    try {
      post(std::move(command));
    } catch (const std::bad_alloc&) {
      log_dropped_command();
    }
  }
  static void log_dropped_command();
  void run();
  bool run_commands();
  void step();
  void die(const std::exception& fault);
  void publish();
  // watch.cc
  void watch(Duration timeout);
  void look(scheduler::ProgressWatch& watch, std::unique_lock<std::mutex>& lock);
  void record_stall(const scheduler::ProgressWatch& watch, TimePoint now);
  void end_drain(std::unique_lock<std::mutex>& lock);
  void stop_watchdog();
  void request_ended(RequestHandle handle);

  const EngineOptions options_;
  RequestSeeds seeds_{options_.seed};
  const Clock& clock_;
  const ModelCard card_;
  const CostKey cost_key_;
  std::vector<std::string> notes_;
  const memory::PoolConfig pool_;
  const std::unique_ptr<ModelSide> model_;  // its runner is for the engine thread only
  const std::unique_ptr<Frontend> frontend_;
  AdapterTable adapters_;
  // Held while a worker changes the table together with pins and with what the engine thread is
  // told of them, so that these agree. Not held while files are read.
  std::mutex changing_adapters_;
  std::unique_ptr<EngineCore> core_;  // used by the engine thread only
  // Errors for ended requests, created while memory is available.
  const Error stopped_{ErrorCode::kCancelled, "the server was stopped", {}};
  const Error stalled_error_{ErrorCode::kUnavailable,
                             "the server is shutting down, and the request has stalled; send it "
                             "to another server",
                             {}};
  const Error failed_error_ =
      internal("the engine has stopped after an internal fault");  // no paths
  bool waits_for_copies_ = false;  // all requests wait for copies; engine thread only
  bool last_step_idle_ = false;    // the last step ran nothing; engine thread only
  // Engine thread only: the runner may have work to do ahead, and now is the time for it.
  bool has_work_ahead_ = true, undisturbed_ = false;

  // Held while the observer is called, so that it is never called after being replaced.
  std::mutex observer_mutex_;
  StepObserver* observer_ = nullptr;
  StepProbe probe_;
  std::atomic<bool> healthy_ = true;
  std::atomic<bool> stopping_ = false;  // set by the destructor: workers start no new work
  std::atomic<uint64_t> next_handle_ = 1;
  std::atomic<int> queued_ = 0;  // accepted but not yet scheduled; incremented only under mutex_

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  EngineCommands inbox_;
  bool stop_ = false;
  bool draining_ = false;
  bool copied_ = false;  // copies have finished since the last step
  EngineStats stats_;
  // As of the engine thread's last iteration, and the time of that.
  scheduler::Progress progress_;
  scheduler::Waits waits_;
  TimePoint round_at_{};
  std::string standstill_;
  std::condition_variable watchdog_wake_;
  bool watchdog_stopping_ = false;
  std::vector<std::function<void()>> drained_;  // callbacks of drain()
  // Accepted and not yet ended.
  std::unordered_map<RequestHandle, std::shared_ptr<ActiveRequest>> requests_;
  int preparing_ = 0;  // requests whose prompt or grammar is being prepared

  // Declared last, so that the threads end before the members they use are destroyed.
  std::thread thread_, watchdog_thread_;  // watchdog_thread_: after start_watchdog()
  std::unique_ptr<PromptWorkers> prompt_workers_;
  std::unique_ptr<FormWorkers> form_workers_;
  // The calls of one name run in their order, of different names at the same time.
  std::unique_ptr<FairPool> adapter_workers_;
};

}  // namespace valora::serving
