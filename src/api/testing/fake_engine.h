// An Engine without a model, for tests of its callers. A script function gives the answers.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/engine.h"
#include "api/testing/fake_adapters.h"
#include "api/testing/reply.h"

namespace valora::testing {

ModelCard fake_model();

struct FakeOptions {
  // Produces the answer to a request. Runs on the thread that calls submit().
  std::function<Reply(const GenerateRequest&)> script;
  ModelCard model = fake_model();
  size_t max_queued = SIZE_MAX;  // highest number of open requests; more get kQueueFull
  // submit() delivers the whole answer before it returns. There is no engine thread.
  bool answers_inline = false;
  // If set, a step runs only the newest request, and only while `patience` requests are open or all
  // `total` requests have been submitted. Answers then end out of order, so tests can observe
  // concurrency. Absent: a step runs all requests.
  struct NewestFirst {
    size_t total;
    size_t patience = 1;
  };
  std::optional<NewestFirst> newest_first = {};
  std::string (*token_text)(int32_t) = [](int32_t id) { return "<" + std::to_string(id) + ">"; };
};

class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(FakeOptions options);
  ~FakeEngine() override;

  void add_adapter(const std::string& name, Heads heads = {});
  void set_heads(Heads heads);          // for adapters loaded from now on
  void set_max_adapters(size_t count);  // more loads get kUnavailable
  void set_healthy(bool healthy);
  void set_standstill(std::string reason);

  // Held requests wait. After hold_loads(), loads finish only in release_loads(), which returns how
  // many did.
  void hold_requests(bool hold);
  void release_hanging();
  void hold_loads();
  size_t release_loads();
  // These throw after a minute, so that a test fails instead of hanging. wait_for_cancelled()
  // counts from the start.
  void wait_for_cancelled(size_t count);
  void wait_for_running(size_t count);

  std::deque<GenerateRequest> requests() const;  // the newest thousand, as submitted
  size_t most_open() const;
  size_t cancelled() const;
  size_t held_sinks() const;  // sinks that may still be called

  const ModelCard& model() const override { return options_.model; }
  Result<RequestHandle> submit(GenerateRequest request,
                               std::shared_ptr<ResponseSink> sink) override;
  // The sink still receives one chunk, as if the engine had been about to call it.
  void cancel(RequestHandle handle) override;
  void load_adapter(LoadAdapter request, std::function<void(Result<AdapterCard>)> done) override;
  void unload_adapter(std::string name, std::optional<uint64_t> expected_generation,
                      std::function<void(Status)> done) override;
  void pin_adapter(std::string name, bool pinned, std::optional<uint64_t> expected_generation,
                   std::function<void(Status)> done) override;
  std::vector<AdapterCard> adapters() const override;
  Result<std::vector<int32_t>> tokenize(
      const Prompt& prompt, bool, const std::vector<AdapterUse>& adapters = {}) const override;
  Result<std::string> detokenize(const std::vector<int32_t>& ids,
                                 const std::vector<AdapterUse>& adapters = {}) const override;
  EngineStats stats() const override;
  void set_observer(StepObserver* observer) override;
  bool healthy() const override;
  std::string standstill() const override;
  void drain(std::function<void()> done) override;

 private:
  struct Open {
    GenerateRequest request;
    std::shared_ptr<ResponseSink> sink;
    Reply reply;
    size_t next = 0;  // index of the next chunk
    bool started = false;
  };
  // Makes the sink's next calls. Returns true if they were the last.
  static bool say_next(Open& open, ResponseSink& sink);

  template <typename Body>
  auto locked(Body body) const {
    const std::lock_guard lock(mutex_);
    return body();
  }
  template <typename Condition>
  void wait_until(Condition condition);
  bool hangs(const Open& open) const;
  std::vector<RequestHandle> next_step() const;
  void loop();
  void run_step(const std::vector<RequestHandle>& handles, std::unique_lock<std::mutex>& lock);
  void advance(RequestHandle handle, std::unique_lock<std::mutex>& lock);
  template <typename Body>
  void tell(std::unique_lock<std::mutex>& lock, std::shared_ptr<ResponseSink> sink, Body body);

  const FakeOptions options_;
  mutable std::mutex mutex_;
  std::mutex observer_mutex_;  // held while the observer is called
  StepObserver* observer_ = nullptr;
  std::condition_variable changed_;
  std::map<RequestHandle, std::shared_ptr<Open>> open_;
  std::vector<std::shared_ptr<ResponseSink>> leaving_;  // sinks of cancelled requests
  std::deque<GenerateRequest> requests_;
  FakeAdapters adapters_;
  std::vector<std::function<void()>> held_loads_;
  std::function<void()> drained_;
  RequestHandle handles_ = 0;
  uint64_t steps_ = 0;
  size_t max_open_ = 0, cancelled_ = 0, busy_ = 0;
  bool healthy_ = true, held_ = false, released_ = false, loads_held_ = false;
  bool draining_ = false, ending_ = false;
  std::string standstill_;
  std::thread thread_;
};

}  // namespace valora::testing
