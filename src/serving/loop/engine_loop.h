// The engine thread: runs commands of other threads, steps, and work ahead while there are no
// requests.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>

#include "serving/local_engine.h"
#include "serving/loop/core.h"
#include "serving/model_side.h"
#include "serving/request_table.h"

namespace valora::serving {

// Public methods are thread-safe, unless they say otherwise. The core and the model's runner are
// used by the engine thread alone. An exception that no step handles ends the engine: the thread
// runs on, but fails every request.
class EngineLoop {
 public:
  // Starts the thread. shares_cores: EngineOptions::shares_cores. The others must outlive the loop.
  EngineLoop(const CoreConfig& config, std::unique_ptr<scheduler::Policy> policy, ModelSide& model,
             const Frontend& frontend, RequestTable& requests, bool shares_cores,
             const Clock& clock);
  // Runs all commands, ends the requests that are left with kCancelled, and ends the thread.
  ~EngineLoop();

  void post(std::function<void(EngineCore&)> command);
  // Posts all of them and leaves the list empty. Does not allocate.
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
  // Waits for the engine thread, and returns what work(core) does. What it throws is thrown here,
  // too, and ends the engine unless it is std::bad_alloc.
  template <typename Work>
  auto ask(Work work);
  // Makes the thread go one round.
  void wake();
  // LocalEngine::forget_merged().
  void forget_merged();

  void set_observer(StepObserver* observer);
  void set_step_probe(LocalEngine::StepProbe probe);
  bool healthy() const { return healthy_; }
  // As of the end of the last round. The part that the engine thread knows.
  EngineStats stats() const;
  // What the last round left, and when it ended.
  struct Round {
    scheduler::Progress progress;
    scheduler::Waits waits;
    TimePoint ended_at{};
    int running = 0, waiting = 0;
    int64_t free_blocks = 0, blocks = 0;
  };
  Round last_round() const;

 private:
  static void log_dropped_command();
  bool has_work() const;
  void run();
  bool run_commands();
  void step();
  void die(const std::exception& fault);
  void publish();
  void end_round();

  ModelRunner& runner_;
  RequestTable& requests_;
  const Clock& clock_;
  const bool shares_cores_;
  // Errors for ended requests, created while memory is available.
  const Error stopped_{ErrorCode::kCancelled, "the server was stopped", {}};
  const Error failed_ = internal("the engine has stopped after an internal fault");  // no paths
  std::atomic<bool> healthy_ = true;  // cleared by the engine thread

  // Held while the observer is called, so that it is never called after being replaced. An observer
  // may take any other lock.
  std::mutex observer_mutex_;
  StepObserver* observer_ = nullptr;
  LocalEngine::StepProbe probe_;

  mutable std::mutex mutex_;  // guards what follows up to core_; no other part is called under it
  std::condition_variable wake_;
  EngineCommands inbox_;
  bool stop_ = false;
  bool woken_ = false;  // wake() since the last round
  EngineStats stats_;
  scheduler::Progress progress_;
  scheduler::Waits waits_;
  TimePoint round_ended_at_{};

  // Engine thread only. After mutex_ and wake_, which the core's mover uses.
  std::unique_ptr<EngineCore> core_;
  bool waits_for_copies_ = false;  // all requests do
  bool last_step_idle_ = false;    // the last step ran nothing
  // The runner may have work to do ahead, and now is the time for it.
  bool has_work_ahead_ = true, undisturbed_ = false;
  std::thread thread_;
};

template <typename Work>
auto EngineLoop::ask(Work work) {
  using Answer = std::invoke_result_t<Work, EngineCore&>;
  const auto promise = std::make_shared<std::promise<Answer>>();
  auto answer = promise->get_future();
  post([promise, work = std::move(work)](EngineCore& core) {
    try {
      if constexpr (std::is_void_v<Answer>) {
        work(core);
        promise->set_value();
      } else {
        promise->set_value(work(core));
      }
    } catch (...) {
      promise->set_exception(std::current_exception());
      throw;
    }
  });
  return answer.get();
}

}  // namespace valora::serving
