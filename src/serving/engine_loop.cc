// The engine thread's loop: commands, steps, and work ahead while there are no requests.
#include <utility>

#include "base/log/log.h"
#include "serving/serving_engine.h"

namespace valora::serving {
namespace {

// How often the engine thread polls memory while nothing else happens.
constexpr auto kMemoryPeriod = std::chrono::milliseconds(100);
// After the last request the next one of the same client often follows at once, and would wait for
// work that is done ahead of it.
constexpr auto kUndisturbed = std::chrono::milliseconds(50);

}  // namespace

// Requires mutex_.
bool ServingEngine::has_work() const {
  if (stop_ || copied_ || !inbox_.empty() || (!drained_.empty() && requests_.empty())) return true;
  return healthy_ && !core_->idle() && !waits_for_copies_;
}

// Runs the inbox's commands; waits if there is no other work. Returns false if the engine must stop
// and the inbox is empty.
bool ServingEngine::run_commands() {
  EngineCommands commands;
  bool stop;
  {
    std::unique_lock lock(mutex_);
    const auto work = [this] { return has_work(); };
    if (options_.shares_cores && !work()) model_->runner().release_threads();
    const auto undisturbed_for =
        std::exchange(undisturbed_, false) ? Duration{} : Duration{kUndisturbed};
    if (core_->has_pending_memory_work() || waits_for_copies_)
      wake_.wait_for(lock, kMemoryPeriod, work);
    else if (has_work_ahead_ && healthy_)
      undisturbed_ = !wake_.wait_for(lock, undisturbed_for, work) && requests_.empty();
    else
      wake_.wait(lock, work);
    if (!inbox_.empty()) has_work_ahead_ = true;
    commands.swap(inbox_);
    copied_ = false;
    stop = stop_;
  }
  while (!commands.empty()) {
    const auto command = std::move(commands.front());
    commands.pop_front();
    try {
      command(*core_);
    } catch (const std::bad_alloc&) {  // no request's end depends on such a command
      spdlog::error("a command of the engine was lost: out of memory");
    } catch (...) {
      const std::lock_guard lock(mutex_);
      inbox_.splice(inbox_.begin(), commands);
      throw;
    }
  }
  return !stop;
}

void ServingEngine::step() {
  if (core_->idle()) {
    core_->poll_memory();
    if (undisturbed_) has_work_ahead_ = core_->prepare_ahead();
    return;
  }
  has_work_ahead_ = true;
  const double merging = core_->merge_seconds();
  const scheduler::StepReport report = core_->step();
  waits_for_copies_ = report.waits_for_copies;
  last_step_idle_ = report.sequences == 0;
  if (report.sequences == 0) return;
  {
    const std::lock_guard lock(mutex_);
    ++stats_.steps;
    stats_.step_seconds += report.seconds;
    stats_.overhead_seconds += report.overhead_seconds;
  }
  const std::lock_guard lock(observer_mutex_);
  if (observer_) {
    observer_->on_step({.tokens = report.tokens,
                        .sequences = report.sequences,
                        .seconds = report.seconds,
                        .mode = scheduler::mode_name(report.shape.mode),
                        .switched = report.shape.switches,
                        .merged = report.shape.merges,
                        .weights_seconds = core_->merge_seconds() - merging,
                        .prefill_tokens = report.shape.prefill_tokens,
                        .adapters = report.shape.segments});
  }
  if (probe_) probe_(report);
}

// Handles an exception that step() does not: the engine runs no more steps, and all requests fail.
void ServingEngine::die(const std::exception& fault) {
  healthy_ = false;
  spdlog::critical("the engine stopped: {}", fault.what());
  core_->fail_all(failed_error_);
}

void ServingEngine::publish() {
  std::vector<std::function<void()>> drained;
  {
    const std::lock_guard lock(mutex_);
    core_->fill(stats_);
    progress_ = core_->progress();
    if (last_step_idle_) waits_ = core_->waits();
    round_at_ = clock_.now();
    if (requests_.empty()) drained.swap(drained_);
  }
  for (const auto& done : drained) done();
}

void ServingEngine::run() {
  bool running = true;
  while (running) {
    try {
      running = run_commands();
      if (!running)
        core_->fail_all(stopped_);
      else if (healthy_) {
        model_->runner().before_step();
        step();
      } else
        core_->fail_all(failed_error_);
    } catch (const std::bad_alloc&) {
      // Not from a request, since those end in the step loop: from polling memory or an observer.
      spdlog::error("out of memory outside of any request; the engine continues");
    } catch (const std::exception& e) {
      die(e);
    }
    try {
      publish();
    } catch (const std::exception& e) {
      spdlog::error("the engine's statistics could not be updated: {}", e.what());
    }
  }
}

}  // namespace valora::serving
