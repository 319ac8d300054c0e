#include "serving/serving_engine.h"

#include <algorithm>
#include <future>

#include "base/log.h"
#include "memory/thread_mover.h"

namespace valora::serving {
namespace {

// While nothing else happens, the engine thread polls memory this often.
constexpr auto kMemoryPeriod = std::chrono::milliseconds(100);

}  // namespace

ServingEngine::ServingEngine(const EngineOptions& options, EngineParts parts, const Clock& clock)
    : options_(options),
      clock_(clock),
      card_(std::move(parts.card)),
      cost_key_(std::move(parts.cost_key)),
      notes_(std::move(parts.notes)),
      pool_(parts.core.pool),
      model_(std::move(parts.model)),
      frontend_(std::move(parts.frontend)),
      adapters_(static_cast<size_t>(std::max(1, options_.max_loras))) {
  auto mover = std::make_unique<memory::ThreadMover>(
      memory::ThreadMover::Options{1, options_.memory.swap_bandwidth},
      [this](const memory::Move& move) { return model_->memory().copy(move); },
      [this] { copied(); }, clock_);
  core_ = std::make_unique<EngineCore>(
      parts.core, std::move(parts.policy), model_->runner(), std::move(mover), model_->memory(),
      *frontend_, clock_,
      CoreEvents{[this] { --queued_; }, [this](RequestHandle handle) { request_ended(handle); }});
  core_->fill(stats_);
  prompt_workers_ = std::make_unique<PromptWorkers>(*frontend_, std::max(1, options_.media_workers),
                                                    options_.fetch.allow_http);
  slow_grammar_worker_ = std::make_unique<FairPool>(1, 1);
  grammar_workers_ = std::make_unique<FairPool>(2, 1);
  adapter_workers_ = std::make_unique<WorkerPool>(1);
  thread_ = std::thread([this] { model_->runner().run_thread([this] { run(); }); });
}

ServingEngine::~ServingEngine() {
  stopping_ = true;
  end_watch();
  // Workers end first: the engine thread ends the requests that they still hand over.
  adapter_workers_.reset();
  if (prompt_workers_) stop_preparing();
  grammar_workers_.reset();
  slow_grammar_worker_.reset();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  core_.reset();  // its mover uses what is destroyed next
}

Result<std::vector<int32_t>> ServingEngine::tokenize(
    const Prompt& prompt, bool add_special_tokens, const std::vector<AdapterUse>& adapters) const {
  VALORA_TRY(uses, applied(adapters));
  return frontend_->tokenize(prompt, add_special_tokens, uses);
}

Result<std::string> ServingEngine::detokenize(const std::vector<int32_t>& ids,
                                              const std::vector<AdapterUse>& adapters) const {
  if (ids.empty()) return std::string();
  VALORA_TRY(uses, applied(adapters));
  VALORA_CHECK(frontend_->check(Prompt(ids), uses));
  return frontend_->language_of(uses).tokenizer->decode(ids, false);
}

std::vector<AdapterCard> ServingEngine::adapters() const {
  std::vector<AdapterCard> cards = adapters_.cards();
  for (AdapterCard& card : cards) {
    if (card.place == WeightsPlace::kNone) continue;
    const AdapterBackend::Residency residency = model_->adapters().residency(card.digest);
    card.place = residency.place;
    card.last_load = residency.last_load;
  }
  return cards;
}

EngineStats ServingEngine::stats() const {
  const media::LoaderStats media = frontend_->media_stats();
  const std::lock_guard lock(mutex_);
  EngineStats stats = stats_;
  stats.preparing = preparing_;
  stats.media_queries = media.queries;
  stats.media_hits = media.hits;
  stats.media_bytes = media.bytes;
  stats.media_entries = media.entries;
  return stats;
}

void ServingEngine::set_observer(StepObserver* observer) {
  const std::lock_guard lock(observer_mutex_);
  observer_ = observer;
}

void ServingEngine::set_step_probe(StepProbe probe) {
  const std::lock_guard lock(observer_mutex_);
  probe_ = std::move(probe);
}

void ServingEngine::forget_merged() {
  std::promise<void> done;
  post([&](EngineCore& core) {
    try {
      core.forget_merged();
      publish();     // its caller may look at the statistics
    } catch (...) {  // LostWeights: the engine ends, and its caller must not wait
      done.set_exception(std::current_exception());
      throw;
    }
    done.set_value();
  });
  done.get_future().get();
}

void ServingEngine::drain(std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    drained_.push_back(std::move(done));
  }
  wake_.notify_one();
}

void ServingEngine::request_ended(RequestHandle handle) {
  const std::lock_guard lock(mutex_);
  requests_.erase(handle);
}

void ServingEngine::post(std::function<void(EngineCore&)> command) {
  EngineCommands posted;
  posted.push_back(std::move(command));
  hand_over(posted);
}

// Takes no memory.
void ServingEngine::hand_over(EngineCommands& commands) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.splice(inbox_.end(), commands);
  }
  wake_.notify_one();
}

void ServingEngine::lost_command() {
  spdlog::warn("a command of the engine was lost: out of memory");
}

std::string ServingEngine::check() {
  std::promise<std::string> answer;
  post([&](EngineCore& core) { answer.set_value(core.check()); });
  return answer.get_future().get();
}

void ServingEngine::copied() {
  {
    const std::lock_guard lock(mutex_);
    copied_ = true;
  }
  wake_.notify_one();
}

// Under mutex_.
bool ServingEngine::has_work() const {
  if (stop_ || copied_ || !inbox_.empty() || (!drained_.empty() && requests_.empty())) return true;
  return healthy_ && !core_->idle() && !waits_for_copies_;
}

// Runs the commands of the inbox; waits if there is no other work. Returns false if the engine must
// stop and the inbox is empty.
bool ServingEngine::run_commands() {
  EngineCommands commands;
  bool stop;
  {
    std::unique_lock lock(mutex_);
    const auto work = [this] { return has_work(); };
    if (options_.shares_cores && !work()) model_->runner().release_threads();
    if (core_->has_pending_memory_work() || waits_for_copies_)
      wake_.wait_for(lock, kMemoryPeriod, work);
    else
      wake_.wait(lock, work);
    commands.swap(inbox_);
    copied_ = false;
    stop = stop_;
  }
  while (!commands.empty()) {
    const auto command = std::move(commands.front());
    commands.pop_front();
    try {
      command(*core_);
    } catch (const std::bad_alloc&) {  // none that a request's end depends on
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
  if (core_->idle()) return core_->poll_memory();
  const double merging = core_->merge_seconds();
  const scheduler::StepReport report = core_->step();
  waits_for_copies_ = report.waits_for_copies;
  stood_ = report.sequences == 0;
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

// A fault that step() does not handle: the engine runs no more steps, and all requests get the
// error.
void ServingEngine::die(const std::exception& fault) {
  healthy_ = false;
  spdlog::critical("the engine stopped: {}", fault.what());
  core_->fail_all(died_);
}

void ServingEngine::publish() {
  std::vector<std::function<void()>> drained;
  {
    const std::lock_guard lock(mutex_);
    core_->fill(stats_);
    progress_ = core_->progress();
    if (stood_) waits_ = core_->waits();
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
        core_->fail_all(died_);
    } catch (const std::bad_alloc&) {
      // Not of a request: those end in the step loop. Memory's wishes, or an observer's.
      spdlog::error("the engine left something undone: out of memory");
    } catch (const std::exception& e) {
      die(e);
    }
    try {
      publish();
    } catch (const std::exception& e) {
      spdlog::error("the engine's statistics stay as they were: {}", e.what());
    }
  }
}

}  // namespace valora::serving
