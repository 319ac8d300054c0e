#include "serving/loop/engine_loop.h"

#include "base/log/log.h"
#include "memory/thread_mover.h"

namespace valora::serving {
namespace {

// How often the engine thread polls memory while nothing else happens.
constexpr auto kMemoryPeriod = std::chrono::milliseconds(100);
// After the last request the next one of the same client often follows at once, and would wait for
// work that is done ahead of it.
constexpr auto kUndisturbed = std::chrono::milliseconds(50);

}  // namespace

EngineLoop::EngineLoop(const CoreConfig& config, std::unique_ptr<scheduler::Policy> policy,
                       ModelSide& model, const Frontend& frontend, RequestTable& requests,
                       bool shares_cores, const Clock& clock)
    : runner_(model.runner()), requests_(requests), clock_(clock), shares_cores_(shares_cores) {
  auto mover = std::make_unique<memory::ThreadMover>(
      memory::ThreadMover::Options{1, config.copy_bandwidth},
      [&memory = model.memory()](const memory::Move& move) { return memory.copy(move); },
      [this] { wake(); }, clock);
  core_ = std::make_unique<EngineCore>(
      config, std::move(policy), runner_, std::move(mover), model.memory(), frontend, clock,
      CoreEvents{[this] { requests_.scheduled(); },
                 [this](RequestHandle handle) { requests_.ended(handle); }});
  core_->fill(stats_);
  thread_ = std::thread([this] { runner_.run_thread([this] { run(); }); });
}

EngineLoop::~EngineLoop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

// ---- for other threads ----

void EngineLoop::post(std::function<void(EngineCore&)> command) {
  EngineCommands posted;
  posted.push_back(std::move(command));
  hand_over(posted);
}

void EngineLoop::hand_over(EngineCommands& commands) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.splice(inbox_.end(), commands);
  }
  wake_.notify_one();
}

void EngineLoop::log_dropped_command() {
  spdlog::warn("a command of the engine was lost: out of memory");
}

void EngineLoop::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  wake_.notify_one();
}

void EngineLoop::forget_merged() {
  ask([this](EngineCore& core) {
    core.forget_merged();
    publish();  // the caller may read the statistics
  });
}

void EngineLoop::set_observer(StepObserver* observer) {
  const std::lock_guard lock(observer_mutex_);
  observer_ = observer;
}

void EngineLoop::set_step_probe(LocalEngine::StepProbe probe) {
  const std::lock_guard lock(observer_mutex_);
  probe_ = std::move(probe);
}

EngineStats EngineLoop::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

EngineLoop::Round EngineLoop::last_round() const {
  const std::lock_guard lock(mutex_);
  return {progress_,          waits_,         round_ended_at_,
          stats_.running,     stats_.waiting, stats_.memory.free,
          stats_.memory.total};
}

// ---- on the engine thread ----

// Requires mutex_.
bool EngineLoop::has_work() const {
  if (stop_ || woken_ || !inbox_.empty()) return true;
  return healthy_ && !core_->idle() && !waits_for_copies_;
}

// Runs the inbox's commands; waits if there is no other work. Returns false if the engine must stop
// and the inbox is empty.
bool EngineLoop::run_commands() {
  EngineCommands commands;
  bool stop;
  {
    std::unique_lock lock(mutex_);
    const auto work = [this] { return has_work(); };
    if (shares_cores_ && !work()) runner_.release_threads();
    const auto undisturbed_for =
        std::exchange(undisturbed_, false) ? Duration{} : Duration{kUndisturbed};
    if (core_->has_pending_memory_work() || waits_for_copies_)
      wake_.wait_for(lock, kMemoryPeriod, work);
    else if (has_work_ahead_ && healthy_)
      undisturbed_ = !wake_.wait_for(lock, undisturbed_for, work);
    else
      wake_.wait(lock, work);
    if (!inbox_.empty()) has_work_ahead_ = true;
    commands.swap(inbox_);
    woken_ = false;
    stop = stop_;
  }
  undisturbed_ = undisturbed_ && requests_.empty();
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

void EngineLoop::step() {
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
void EngineLoop::die(const std::exception& fault) {
  healthy_ = false;
  requests_.close(RequestTable::Closed::kFailed);
  spdlog::critical("the engine stopped: {}", fault.what());
  core_->fail_all(failed_);
}

void EngineLoop::publish() {
  const std::lock_guard lock(mutex_);
  core_->fill(stats_);
  progress_ = core_->progress();
  if (last_step_idle_) waits_ = core_->waits();
  round_ended_at_ = clock_.now();
}

// Lets a drain end even if memory runs out before it.
void EngineLoop::end_round() {
  const auto guarded = [](const auto& work) {
    try {
      work();
    } catch (const std::exception& e) {
      spdlog::error("the engine's statistics could not be updated: {}", e.what());
    }
  };
  guarded([this] { publish(); });
  guarded([this] {
    for (const auto& done : requests_.take_finished_drains()) done();
  });
}

void EngineLoop::run() {
  bool running = true;
  while (running) {
    try {
      running = run_commands();
      if (!running)
        core_->fail_all(stopped_);
      else if (healthy_) {
        runner_.before_step();
        step();
      } else
        core_->fail_all(failed_);
    } catch (const std::bad_alloc&) {
      // Not from a request, since those end in the step loop: from polling memory or an observer.
      spdlog::error("out of memory outside of any request; the engine continues");
    } catch (const std::exception& e) {
      die(e);
    }
    end_round();
  }
}

}  // namespace valora::serving
