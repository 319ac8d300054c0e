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

Reply say(std::string text, const std::vector<float>& logprobs) {
  OutputChunk chunk{.text = std::move(text), .finish = Finish{}};
  for (const float logprob : logprobs) chunk.tokens.push_back({{0, "", logprob}, {}});
  Reply reply{.chunks = {std::move(chunk)}};
  reply.info.usage.prompt_tokens = 10;
  return reply;
}

std::string text_of(const Prompt& prompt) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  std::string text;
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
    for (const int32_t id : *ids) text += (text.empty() ? "" : " ") + std::to_string(id);
    return text;
  }
  for (const ContentPart& part : std::get<ChatPrompt>(prompt).messages.back().parts)
    if (const auto* piece = std::get_if<std::string>(&part)) text += *piece;
  return text;
}

std::vector<std::string> split_tokens(const std::string& text) {
  std::vector<std::string> tokens;
  for (const char c : text) {
    if (tokens.empty() || c == ' ') tokens.emplace_back();
    tokens.back() += c;
  }
  return tokens;
}

int32_t token_id(const std::string& token) {
  uint32_t hash = 2166136261u;
  for (const char c : token) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return static_cast<int32_t>(hash % 30000);
}

ModelCard fake_model() {
  return {.name = "fake",
          .path = "/models/fake",
          .architecture = "Fake",
          .max_model_len = 4096,
          .created = 1700000000,
          .images = true,
          .videos = true,
          .kv_block_tokens = 16,
          .kv_blocks = 256};
}

FakeEngine::FakeEngine(FakeOptions options) : options_(std::move(options)) {
  if (!options_.answers_inline) thread_ = std::thread([this] { loop(); });
}

FakeEngine::~FakeEngine() {
  locked([this] { ending_ = true; });
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// ---- what tests set and see ----

void FakeEngine::add_adapter(const std::string& name, Heads heads) {
  locked([&] { adapters_.add(name, std::move(heads)); });
}

void FakeEngine::set_heads(Heads heads) {
  locked([&] { adapters_.set_heads(std::move(heads)); });
}

void FakeEngine::set_healthy(bool healthy) {
  locked([&] { healthy_ = healthy; });
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
    throw std::runtime_error("what the test waits for did not happen");
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
  return locked([this] { return most_open_; });
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
  most_open_ = std::max(most_open_, open_.size());
  lock.unlock();
  changed_.notify_all();
  return handle;
}

void FakeEngine::cancel(RequestHandle handle) {
  std::shared_ptr<Open> dropped;  // let go of without the lock
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

std::vector<AdapterCard> FakeEngine::adapters() const {
  return locked([this] { return adapters_.cards(); });
}

Result<std::vector<int32_t>> FakeEngine::tokenize(const Prompt& prompt, bool) const {
  std::vector<int32_t> ids;
  for (const std::string& token : split_tokens(text_of(prompt))) ids.push_back(token_id(token));
  return ids;
}

Result<std::string> FakeEngine::detokenize(const std::vector<int32_t>& ids) const {
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
  stats.prefix_queries = 10;
  stats.prefix_hits = 4;
  std::set<std::string> names;
  for (const auto& [_, open] : open_)
    for (const AdapterUse& use : open->request.adapters) names.insert(use.name);
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

void FakeEngine::drain(std::function<void()> done) {
  if (options_.answers_inline) return done();
  locked([&] {
    draining_ = true;
    drained_ = std::move(done);
  });
  changed_.notify_all();
}

// ---- steps ----

bool FakeEngine::hangs(const Open& open) const {
  return !released_ && open.next >= open.reply.hangs_after;
}

std::vector<RequestHandle> FakeEngine::next_step() const {
  std::vector<RequestHandle> handles;
  if (const auto& newest = options_.newest_first) {
    if (!open_.empty() && (open_.size() >= newest->patience || handles_ == newest->total))
      handles.push_back(open_.rbegin()->first);
    return handles;
  }
  for (const auto& [handle, open] : open_)
    if (!held_ && !hangs(*open)) handles.push_back(handle);
  return handles;
}

void FakeEngine::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (!leaving_.empty()) {
      auto sink = std::move(leaving_.back());
      leaving_.pop_back();
      tell(lock, std::move(sink), [](ResponseSink& s) { s.on_output({.text = "too late"}); });
    } else if (ending_) {
      return;
    } else if (draining_ && open_.empty() && drained_) {
      const auto drained = std::exchange(drained_, nullptr);
      lock.unlock();
      drained();
      lock.lock();
    } else if (const auto handles = next_step(); !handles.empty()) {
      run_step(handles, lock);
    } else {
      changed_.wait(lock);
    }
  }
}

void FakeEngine::run_step(const std::vector<RequestHandle>& handles,
                          std::unique_lock<std::mutex>& lock) {
  for (const RequestHandle handle : handles) advance(handle, lock);
  ++steps_;
  lock.unlock();
  {
    const std::lock_guard observer_lock(observer_mutex_);
    const int count = static_cast<int>(handles.size());
    if (observer_) observer_->on_step(count, count, 0.001);
  }
  lock.lock();
}

// Requests that end are closed before their sinks are told.
void FakeEngine::advance(RequestHandle handle, std::unique_lock<std::mutex>& lock) {
  const auto found = open_.find(handle);
  if (found == open_.end()) return;
  std::shared_ptr<Open> open = found->second;
  std::shared_ptr<ResponseSink> sink = open->sink;
  const Reply& reply = open->reply;
  const bool ends = !reply.endless && (reply.error ? open->next >= reply.chunks.size()
                                                   : open->next + 1 >= reply.chunks.size());
  if (ends) {
    open->sink.reset();
    open_.erase(found);
  }
  tell(lock, std::move(sink), [&](ResponseSink& s) { say_next(*open, s); });
  changed_.notify_all();
}

// The sink is let go once nothing more is said to it.
template <typename Body>
void FakeEngine::tell(std::unique_lock<std::mutex>& lock, std::shared_ptr<ResponseSink> sink,
                      Body body) {
  ++busy_;
  lock.unlock();
  std::this_thread::yield();
  body(*sink);
  lock.lock();
  --busy_;
  lock.unlock();
  sink.reset();
  lock.lock();
}

bool FakeEngine::say_next(Open& open, ResponseSink& sink) {
  const Reply& reply = open.reply;
  const Usage& usage = reply.info.usage;
  const int n = open.request.sampling.n;
  if (!std::exchange(open.started, true))
    sink.on_start({usage.prompt_tokens, 0, usage.cached_tokens});
  if (open.next < reply.chunks.size()) {
    OutputChunk chunk = reply.chunks[open.next];
    for (chunk.index = 0; chunk.index < n; ++chunk.index) sink.on_output(chunk);
    if (reply.endless && open.next + 1 == reply.chunks.size()) return false;
    if (++open.next < reply.chunks.size() || reply.error) return false;
  } else if (reply.error) {
    sink.on_error(*reply.error);
    return true;
  }
  if (reply.classification) sink.on_classification(*reply.classification);
  FinalInfo info = reply.info;
  for (const OutputChunk& chunk : reply.chunks)
    info.usage.completion_tokens += n * static_cast<int>(chunk.tokens.size());
  sink.on_done(info);
  return true;
}

}  // namespace valora::testing
