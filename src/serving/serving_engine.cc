#include "serving/serving_engine.h"

#include <algorithm>
#include <future>

#include "base/log/log.h"
#include "memory/thread_mover.h"

namespace valora::serving {
namespace {

// Loads that read their files at the same time, each up to AdapterLimits::max_file_bytes.
constexpr int kAdaptersAtOnce = 4;

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
      memory::ThreadMover::Options{1, parts.core.copy_bandwidth},
      [this](const memory::Move& move) { return model_->memory().copy(move); },
      [this] { copied(); }, clock_);
  core_ = std::make_unique<EngineCore>(
      parts.core, std::move(parts.policy), model_->runner(), std::move(mover), model_->memory(),
      *frontend_, clock_,
      CoreEvents{[this] { --queued_; }, [this](RequestHandle handle) { request_ended(handle); }});
  core_->fill(stats_);
  prompt_workers_ = std::make_unique<PromptWorkers>(*frontend_, std::max(1, options_.media_workers),
                                                    options_.fetch.allow_http);
  form_workers_ = std::make_unique<FormWorkers>();
  adapter_workers_ = std::make_unique<FairPool>(kAdaptersAtOnce, 1);
  thread_ = std::thread([this] { model_->runner().run_thread([this] { run(); }); });
}

ServingEngine::~ServingEngine() {
  stopping_ = true;
  stop_watchdog();
  // Workers end first; the engine thread then ends the requests they have passed on.
  adapter_workers_.reset();
  if (prompt_workers_) stop_preparing();
  form_workers_.reset();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  core_.reset();  // its mover uses members destroyed later
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
  for (AdapterCard& card : cards) add_residency(card);
  return cards;
}

std::optional<AdapterCard> ServingEngine::adapter(const std::string& name) const {
  std::optional<AdapterCard> card = adapters_.card(name);
  if (card) add_residency(*card);
  return card;
}

void ServingEngine::add_residency(AdapterCard& card) const {
  if (card.place == WeightsPlace::kNone) return;
  const AdapterBackend::Residency residency = model_->adapters().residency(card.digest);
  card.place = residency.place;
  card.last_load = residency.last_load;
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
  const AdapterBackend::HeadMemory heads = model_->adapters().head_memory();
  stats.memory.head_bytes = heads.bytes;
  stats.memory.head_limit = heads.limit;
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
      publish();     // the caller may read the statistics
    } catch (...) {  // WeightsLostError: the engine ends, but the caller must not hang
      done.set_exception(std::current_exception());
      throw;
    }
    done.set_value();
  });
  done.get_future().get();
}

void ServingEngine::warm_up() {
  std::promise<std::string> note;
  post([&](EngineCore& core) {
    try {
      note.set_value(core.warm_up());
    } catch (...) {
      note.set_exception(std::current_exception());
      throw;
    }
  });
  if (std::string text = note.get_future().get(); !text.empty()) notes_.push_back(std::move(text));
}

void ServingEngine::drain(std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
  }
  form_workers_->close();
  {
    const std::lock_guard lock(mutex_);
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

// Does not allocate.
void ServingEngine::hand_over(EngineCommands& commands) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.splice(inbox_.end(), commands);
  }
  wake_.notify_one();
}

void ServingEngine::log_dropped_command() {
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

}  // namespace valora::serving
