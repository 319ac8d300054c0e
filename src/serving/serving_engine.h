// Implements LocalEngine from four parts, each with its own state and locks: the intake accepts and
// prepares requests, the adapter manager loads adapters, the loop runs steps on the engine thread,
// and the watch looks after its progress. Contracts: api/engine.h, serving/local_engine.h. The
// tensor side is behind serving/model_side.h.
//
// Locks: AdapterManager::changing_ or EngineLoop::observer_mutex_ comes first, then one of the
// parts' other mutexes, which are held only for a few lines that call no other part.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/options.h"
#include "serving/adapters/adapter_manager.h"
#include "serving/intake/intake.h"
#include "serving/local_engine.h"
#include "serving/loop/engine_loop.h"
#include "serving/model_side.h"
#include "serving/request_table.h"
#include "serving/watch.h"

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
                               std::shared_ptr<ResponseSink> sink) override {
    return intake_.submit(std::move(request), std::move(sink));
  }
  void cancel(RequestHandle handle) override { intake_.cancel(handle); }
  void load_adapter(LoadAdapter request, std::function<void(Result<AdapterCard>)> done) override {
    adapters_.load(std::move(request), std::move(done));
  }
  void unload_adapter(std::string name, std::optional<uint64_t> expected_generation,
                      std::function<void(Status)> done) override {
    adapters_.unload(name, expected_generation, std::move(done));
  }
  void pin_adapter(std::string name, bool pinned, std::optional<uint64_t> expected_generation,
                   std::function<void(Status)> done) override {
    adapters_.pin(name, pinned, expected_generation, std::move(done));
  }
  std::vector<AdapterCard> adapters() const override { return adapters_.cards(); }
  std::optional<AdapterCard> adapter(const std::string& name) const override {
    return adapters_.card(name);
  }
  Result<std::vector<int32_t>> tokenize(
      const Prompt& prompt, bool add_special_tokens,
      const std::vector<AdapterUse>& adapters = {}) const override;
  Result<std::string> detokenize(const std::vector<int32_t>& ids,
                                 const std::vector<AdapterUse>& adapters = {}) const override;
  EngineStats stats() const override;
  void set_observer(StepObserver* observer) override { loop_.set_observer(observer); }
  bool healthy() const override { return loop_.healthy(); }
  std::string standstill() const override { return watch_.standstill(); }
  void drain(std::function<void()> done) override { watch_.drain(std::move(done)); }

  void start_watchdog(Duration timeout) override { watch_.start(timeout); }
  void set_step_probe(StepProbe probe) override { loop_.set_step_probe(std::move(probe)); }
  void forget_merged() override { loop_.forget_merged(); }
  CostKey cost_key() const override { return cost_key_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  std::string check() override;

 private:
  const EngineOptions options_;
  const ModelCard card_;
  const CostKey cost_key_;
  std::vector<std::string> notes_;
  const std::unique_ptr<ModelSide> model_;  // its runner is for the engine thread only
  const std::unique_ptr<Frontend> frontend_;
  // Each part uses those above it, and is destroyed before them.
  RequestTable requests_;
  EngineLoop loop_;
  AdapterManager adapters_;
  Intake intake_;
  Watch watch_;
};

}  // namespace valora::serving
