#include "api/testing/fake_engine.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <stdexcept>
#include <utility>

namespace valora::testing {
namespace {

constexpr size_t kRequestsKept = 1000;

}  // namespace

ModelCard fake_model() {
  return {.name = "fake",
          .path = "/models/fake",
          .architecture = "Fake",
          .max_model_len = 4096,
          .created = 1700000000,
          .images = true,
          .videos = true,
          .embedding_size = 3,
          .retrieval = {.judge = JudgeRecipe{.yes = 1, .no = 2}},
          .kv_block_tokens = 16,
          .kv_blocks = 256,
          .kv_dtype = "int8",
          .kv_token_bytes = 66};
}

FakeEngine::FakeEngine(FakeOptions options) : options_(std::move(options)) {
  if (!options_.answers_inline) thread_ = std::thread([this] { loop(); });
}

FakeEngine::~FakeEngine() {
  locked([this] { ending_ = true; });
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// ---- controls for tests ----

void FakeEngine::add_adapter(const std::string& name, Heads heads) {
  locked([&] { adapters_.add(name, std::move(heads)); });
}

void FakeEngine::set_heads(Heads heads) {
  locked([&] { adapters_.set_heads(std::move(heads)); });
}

void FakeEngine::set_max_adapters(size_t count) {
  locked([&] { adapters_.set_limit(count); });
}

void FakeEngine::set_healthy(bool healthy) {
  locked([&] { healthy_ = healthy; });
}

void FakeEngine::set_standstill(std::string reason) {
  locked([&] { standstill_ = std::move(reason); });
}

void FakeEngine::hold_requests(bool hold) {
  locked([&] { held_ = hold; });
  changed_.notify_all();
}

void FakeEngine::release_hanging() {
  locked([&] { released_ = true; });
  changed_.notify_all();
}

void FakeEngine::hold_loads() {
  locked([&] { loads_held_ = true; });
}

size_t FakeEngine::release_loads() {
  const auto loads = locked([&] {
    loads_held_ = false;
    return std::exchange(held_loads_, {});
  });
  for (const auto& load : loads) load();
  return loads.size();
}

template <typename Condition>
void FakeEngine::wait_until(Condition condition) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, std::chrono::minutes(1), condition))
    throw std::runtime_error(
        "FakeEngine: the awaited condition did not become true within a minute");
}

void FakeEngine::wait_for_cancelled(size_t count) {
  wait_until([&] { return cancelled_ >= count; });
}

void FakeEngine::wait_for_running(size_t count) {
  wait_until([&] { return open_.size() >= count; });
}

std::deque<GenerateRequest> FakeEngine::requests() const {
  return locked([this] { return requests_; });
}

size_t FakeEngine::most_open() const {
  return locked([this] { return max_open_; });
}

size_t FakeEngine::cancelled() const {
  return locked([this] { return cancelled_; });
}

size_t FakeEngine::held_sinks() const {
  return locked([this] { return open_.size() + leaving_.size() + busy_; });
}

// ---- Engine ----

Result<RequestHandle> FakeEngine::submit(GenerateRequest request,
                                         std::shared_ptr<ResponseSink> sink) {
  auto open = std::make_shared<Open>();
  open->reply = options_.script(request);
  if (open->reply.refusal) return *open->reply.refusal;
  open->request = std::move(request);
  open->sink = std::move(sink);
  std::unique_lock lock(mutex_);
  if (draining_) return Error{ErrorCode::kUnavailable, "the engine is draining", {}};
  if (open_.size() >= options_.max_queued)
    return Error{ErrorCode::kQueueFull, "the queue is full", {}};
  for (const AdapterUse& use : open->request.adapters)
    if (!adapters_.contains(use.name)) return not_found("no adapter " + use.name, "model");
  requests_.push_back(open->request);
  if (requests_.size() > kRequestsKept) requests_.pop_front();
  const RequestHandle handle = ++handles_;
  if (options_.answers_inline) {
    lock.unlock();
    while (!say_next(*open, *open->sink)) {
    }
    return handle;
  }
  open_[handle] = std::move(open);
  max_open_ = std::max(max_open_, open_.size());
  lock.unlock();
  changed_.notify_all();
  return handle;
}

void FakeEngine::cancel(RequestHandle handle) {
  std::shared_ptr<Open> dropped;  // destroyed after the lock is released
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(handle);
    if (found == open_.end()) return;
    dropped = std::move(found->second);
    open_.erase(found);
    leaving_.push_back(std::move(dropped->sink));
    ++cancelled_;
  }
  changed_.notify_all();
}

void FakeEngine::load_adapter(LoadAdapter request, std::function<void(Result<AdapterCard>)> done) {
  const auto load = [this, request, done] {
    done(locked([&] { return adapters_.load(request); }));
  };
  const bool held = locked([&] {
    if (loads_held_) held_loads_.push_back(load);
    return loads_held_;
  });
  if (!held) load();
}

void FakeEngine::unload_adapter(std::string name, std::optional<uint64_t> expected_generation,
                                std::function<void(Status)> done) {
  done(locked([&] { return adapters_.unload(name, expected_generation); }));
}

void FakeEngine::pin_adapter(std::string name, bool pinned,
                             std::optional<uint64_t> expected_generation,
                             std::function<void(Status)> done) {
  done(locked([&] { return adapters_.pin(name, pinned, expected_generation); }));
}

std::vector<AdapterCard> FakeEngine::adapters() const {
  return locked([this] { return adapters_.cards(); });
}

Result<std::vector<int32_t>> FakeEngine::tokenize(const Prompt& prompt, bool,
                                                  const std::vector<AdapterUse>&) const {
  std::vector<int32_t> ids;
  for (const std::string& token : split_tokens(text_of(prompt))) ids.push_back(token_id(token));
  return ids;
}

Result<std::string> FakeEngine::detokenize(const std::vector<int32_t>& ids,
                                           const std::vector<AdapterUse>&) const {
  std::string text;
  for (const int32_t id : ids) text += options_.token_text(id);
  return text;
}

EngineStats FakeEngine::stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats stats;
  stats.running = static_cast<int>(open_.size());
  stats.steps = steps_;
  stats.kv_usage = 0.25;
  stats.cost_error_median = 0.125;
  stats.cost_error_p95 = 0.5;
  stats.cost_correction = 1.25;
  stats.visuals_encoded = 6;
  stats.visual_seconds = 1.5;
  stats.step_cost = 0.5;
  stats.prefill_token_cost = 0.25;
  stats.decode_token_cost = 0.75;
  stats.early_aborts = 3;
  stats.tenants = {{"", 0.5}, {"retrieval", 1.5}};
  stats.prefix_queries = 10;
  stats.prefix_hits = 4;
  std::set<std::string> names;
  for (const auto& [_, open] : open_)
    for (const AdapterUse& use : open->request.adapters)
      names.insert(adapters_.loaded_name(use.name));
  stats.running_adapters.assign(names.begin(), names.end());
  return stats;
}

void FakeEngine::set_observer(StepObserver* observer) {
  const std::lock_guard lock(observer_mutex_);
  observer_ = observer;
}

bool FakeEngine::healthy() const {
  return locked([this] { return healthy_; });
}

std::string FakeEngine::standstill() const {
  return locked([this] { return standstill_; });
}

void FakeEngine::drain(std::function<void()> done) {
  if (options_.answers_inline) return done();
  locked([&] {
    draining_ = true;
    drained_ = std::move(done);
  });
  changed_.notify_all();
}

}  // namespace valora::testing
