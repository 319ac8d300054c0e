// A scripted Engine: every answer follows from the request, so servers and clients are tested
// without a model.
//
// A token is a word with the space before it, and the answer repeats the last message token by
// token. Prompts that change it: "!echo-adapters" (the adapters and scales), "!bytes" (a character
// cut in two tokens), "!media" (the media URLs' lengths), "!fail ..." (an error after two tokens),
// "!fail-now" (before any), "!hang" (one token, and no more until released or cancelled), "!flood"
// (large chunks without end until cancelled).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/engine.h"

namespace valora::server::testing {

class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(size_t max_queued = SIZE_MAX) : max_queued_(max_queued) {
    model_.name = "fake";
    model_.path = "/models/fake";
    model_.architecture = "Fake";
    model_.max_model_len = 4096;
    model_.created = 1700000000;
    model_.images = model_.videos = true;
    model_.media_limits = {.images = 4, .videos = 999};
    model_.kv_block_tokens = 16;
    model_.kv_blocks = 256;
    thread_ = std::thread([this] { loop(); });
  }

  ~FakeEngine() override {
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void add_adapter(const std::string& name,
                   std::vector<std::pair<std::string, std::vector<std::string>>> heads = {}) {
    std::lock_guard lock(mutex_);
    AdapterCard card;
    card.name = name;
    card.path = "/adapters/" + name;
    card.generation = ++generation_;
    card.rank = 8;
    card.bytes = 1024;
    card.heads = std::move(heads);
    card.created = 1700000001;
    adapters_[name] = card;
  }
  void set_healthy(bool healthy) {
    std::lock_guard lock(mutex_);
    healthy_ = healthy;
  }

  // Returns when `count` requests have been cancelled in all.
  void wait_for_cancelled(size_t count) {
    wait_until([&] { return cancelled_ >= count; });
  }
  void wait_for_running(size_t count) {
    wait_until([&] { return running_.size() >= count; });
  }
  // Lets the requests that hang end well.
  void release_hanging() {
    std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  // While held, requests wait and loads don't end.
  void hold_requests(bool hold) {
    std::lock_guard lock(mutex_);
    held_ = hold;
    changed_.notify_all();
  }
  void hold_loads() {
    std::lock_guard lock(mutex_);
    loads_held_ = true;
  }
  // Ends the held loads and returns their number.
  size_t release_loads() {
    std::vector<std::function<void()>> loads;
    {
      std::lock_guard lock(mutex_);
      loads_held_ = false;
      loads.swap(held_loads_);
    }
    for (const auto& load : loads) load();
    return loads.size();
  }
  GenerateRequest last_request() const {
    std::lock_guard lock(mutex_);
    return last_request_;
  }

  const ModelCard& model() const override { return model_; }

  Result<RequestHandle> submit(GenerateRequest request,
                               std::shared_ptr<ResponseSink> sink) override {
    std::lock_guard lock(mutex_);
    if (draining_) return Error{ErrorCode::kUnavailable, "the engine is draining", {}};
    if (running_.size() >= max_queued_)
      return Error{ErrorCode::kQueueFull, "the queue is full", {}};
    for (const AdapterUse& use : request.adapters)
      if (!adapters_.contains(use.name)) return not_found("no adapter " + use.name, "model");
    last_request_ = request;
    const RequestHandle handle = ++handles_;
    running_[handle] = Running{std::move(request), std::move(sink), {}, 0, 0};
    changed_.notify_all();
    return handle;
  }

  void cancel(RequestHandle handle) override {
    std::shared_ptr<ResponseSink> dropped;  // released outside the lock
    std::lock_guard lock(mutex_);
    const auto found = running_.find(handle);
    if (found == running_.end()) return;
    dropped = std::move(found->second.sink);
    running_.erase(found);
    ++cancelled_;
    changed_.notify_all();
  }

  void load_adapter(LoadAdapter request, std::function<void(Result<AdapterCard>)> done) override {
    {
      std::lock_guard lock(mutex_);
      if (loads_held_) return held_loads_.push_back([this, request, done] { done(load(request)); });
    }
    done(load(request));
  }
  void unload_adapter(std::string name, std::optional<uint64_t> expected,
                      std::function<void(Status)> done) override {
    done(unload(name, expected));
  }
  std::vector<AdapterCard> adapters() const override {
    std::lock_guard lock(mutex_);
    std::vector<AdapterCard> cards;
    for (const auto& [_, card] : adapters_) cards.push_back(card);
    return cards;
  }

  Result<std::vector<int32_t>> tokenize(const Prompt& prompt, bool) const override {
    std::vector<int32_t> ids;
    for (const std::string& token : split(text_of(prompt))) ids.push_back(id_of(token));
    return ids;
  }
  Result<std::string> detokenize(const std::vector<int32_t>& ids) const override {
    std::string text;
    for (const int32_t id : ids) text += fmt::format("<{}>", id);
    return text;
  }

  EngineStats stats() const override {
    std::lock_guard lock(mutex_);
    EngineStats stats;
    stats.running = static_cast<int>(running_.size());
    stats.steps = steps_;
    stats.kv_usage = 0.25;
    stats.prefix_queries = 10;
    stats.prefix_hits = 4;
    std::set<std::string> names;
    for (const auto& [_, running] : running_)
      for (const AdapterUse& use : running.request.adapters) names.insert(use.name);
    stats.running_adapters.assign(names.begin(), names.end());
    return stats;
  }
  void set_observer(StepObserver* observer) override {
    std::lock_guard lock(step_mutex_);
    observer_ = observer;
  }
  bool healthy() const override {
    std::lock_guard lock(mutex_);
    return healthy_;
  }
  void drain(std::function<void()> done) override {
    std::lock_guard lock(mutex_);
    draining_ = true;
    drained_ = std::move(done);
    changed_.notify_all();
  }

 private:
  struct Running {
    GenerateRequest request;
    std::shared_ptr<ResponseSink> sink;
    std::vector<std::string> tokens;
    size_t next = 0;
    size_t max_tokens = 0;
  };

  // Throws after a minute, so that a test fails instead of hanging.
  template <typename Condition>
  void wait_until(Condition condition) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::minutes(1), condition))
      throw std::runtime_error("what the test waits for did not happen");
  }

  static int32_t id_of(const std::string& token) {
    uint32_t hash = 2166136261u;
    for (const char c : token) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return static_cast<int32_t>(hash % 30000);
  }

  static std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> tokens;
    for (const char c : text) {
      if (tokens.empty() || c == ' ') tokens.emplace_back();
      tokens.back() += c;
    }
    return tokens;
  }

  static std::string text_of(const Prompt& prompt) {
    if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
    if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt))
      return fmt::format("{}", fmt::join(*ids, " "));
    std::string text;
    for (const ContentPart& part : std::get<ChatPrompt>(prompt).messages.back().parts)
      if (const auto* piece = std::get_if<std::string>(&part)) text += *piece;
    return text;
  }

  static std::string answer_of(const GenerateRequest& request, const std::string& prompt) {
    std::string answer;
    if (prompt.find("!echo-adapters") != prompt.npos) {
      for (const AdapterUse& use : request.adapters)
        answer += fmt::format(" {}*{}", use.name, use.scale);
      return answer;
    }
    if (prompt.find("!media") == prompt.npos) return prompt;
    for (const ChatMessage& message : std::get<ChatPrompt>(request.prompt).messages)
      for (const ContentPart& part : message.parts)
        if (const auto* media = std::get_if<MediaRef>(&part))
          answer += fmt::format(" {}:{}", media->kind == MediaRef::Kind::kImage ? "image" : "video",
                                media->url.size());
    return answer;
  }

  Result<AdapterCard> load(const LoadAdapter& request) {
    std::lock_guard lock(mutex_);
    const auto found = adapters_.find(request.name);
    const uint64_t current = found == adapters_.end() ? 0 : found->second.generation;
    if (request.expected_generation && *request.expected_generation != current)
      return Error{ErrorCode::kConflict, fmt::format("the generation is {}", current),
                   "expected_generation"};
    if (current != 0 && !request.replace && !request.expected_generation)
      return Error{ErrorCode::kConflict, "it is loaded already", "lora_name"};
    if (request.path.ends_with("missing")) return not_found("no such folder", "lora_path");
    if (request.path.ends_with("broken"))
      return unprocessable("the adapter has a NaN", "lora_path");
    AdapterCard card;
    card.name = request.name;
    card.path = request.path;
    card.generation = ++generation_;
    card.rank = 4;
    card.bytes = 512;
    card.pinned = request.pinned;
    adapters_[request.name] = card;
    return card;
  }

  Status unload(const std::string& name, std::optional<uint64_t> expected) {
    std::lock_guard lock(mutex_);
    const auto found = adapters_.find(name);
    if (found == adapters_.end())
      return not_found(fmt::format("The lora adapter '{}' cannot be found.", name));
    if (expected && *expected != found->second.generation)
      return Error{ErrorCode::kConflict, "another generation", "expected_generation"};
    adapters_.erase(found);
    return {};
  }

  void loop() {
    std::unique_lock lock(mutex_);
    while (!ending_) {
      std::vector<RequestHandle> handles;
      for (const auto& [handle, running] : running_)
        if (!held_ && !hanging(running)) handles.push_back(handle);
      if (draining_ && running_.empty() && drained_) {
        auto drained = std::exchange(drained_, nullptr);
        lock.unlock();
        drained();
        lock.lock();
        continue;
      }
      if (handles.empty()) {
        changed_.wait(lock);
        continue;
      }
      for (const RequestHandle handle : handles) step(handle, lock);
      ++steps_;
      lock.unlock();
      {
        std::lock_guard step_lock(step_mutex_);
        if (observer_)
          observer_->on_step(static_cast<int>(handles.size()), static_cast<int>(handles.size()),
                             0.001);
      }
      lock.lock();
    }
  }

  bool hanging(const Running& running) const {
    return running.next > 0 && !released_ && running.tokens[0] == "!hang";
  }

  // One token, or the end, of one request. Sinks are called without the lock.
  void step(RequestHandle handle, std::unique_lock<std::mutex>& lock) {
    const auto found = running_.find(handle);
    if (found == running_.end()) return;
    Running& running = found->second;
    const std::shared_ptr<ResponseSink> sink = running.sink;
    if (running.next == 0) prepare(running);
    const GenerateRequest& request = running.request;
    const std::string prompt = text_of(request.prompt);
    const int prompt_tokens = static_cast<int>(std::max<size_t>(1, split(prompt).size()));
    std::vector<std::function<void()>> calls;
    bool ended = false;
    if (running.next == 0) calls.push_back([=] { sink->on_start({prompt_tokens, 0, 2}); });
    if (prompt == "!fail-now" || (prompt.starts_with("!fail ") && running.next == 2)) {
      calls.push_back([=] { sink->on_error(invalid("this prompt fails", "messages")); });
      ended = true;
    } else if (request.task == Task::kClassify) {
      calls.push_back([=, result = classification(request)] { sink->on_classification(result); });
      ended = true;
      calls.push_back(done_call(sink, prompt_tokens, 0));
    } else {
      const size_t index = std::min(running.next, running.tokens.size() - 1);
      const bool last = prompt != "!flood" && (running.next + 1 >= running.tokens.size() ||
                                               running.next + 1 >= running.max_tokens);
      for (int i = 0; i < request.sampling.n; ++i)
        calls.push_back([=, chunk = chunk_of(running, i, index, last)] { sink->on_output(chunk); });
      if (last) {
        ended = true;
        calls.push_back(done_call(sink, prompt_tokens,
                                  static_cast<int>(running.next + 1) * request.sampling.n));
      }
    }
    ++running.next;
    if (ended) running_.erase(found);
    lock.unlock();
    for (const auto& call : calls) call();
    lock.lock();
    changed_.notify_all();
  }

  void prepare(Running& running) {
    const std::string prompt = text_of(running.request.prompt);
    running.tokens = split(answer_of(running.request, prompt));
    if (prompt == "!bytes") running.tokens = {"\xE2\x82", "\xAC", " euro"};
    if (prompt == "!hang") running.tokens = {"!hang", " no more"};
    if (prompt == "!flood") running.tokens = {std::string(size_t{64} << 10, 'x')};
    if (running.tokens.empty()) running.tokens.emplace_back();
    running.max_tokens = static_cast<size_t>(running.request.sampling.max_tokens.value_or(1000));
  }

  static OutputChunk chunk_of(const Running& running, int sequence, size_t index, bool last) {
    OutputChunk chunk;
    chunk.index = sequence;
    const std::string& token = running.tokens[index];
    // Half characters wait for their other half.
    if (token == "\xE2\x82")
      chunk.text = "";
    else if (token == "\xAC")
      chunk.text = "\xE2\x82\xAC";
    else
      chunk.text = token;
    TokenOutput output;
    output.chosen = {id_of(token), token, -0.5f};
    for (int i = 0; i < running.request.sampling.logprobs.value_or(0); ++i)
      output.top.push_back(
          {i, i == 0 ? token : fmt::format("alt{}", i), -0.5f - static_cast<float>(i)});
    chunk.tokens.push_back(std::move(output));
    if (last) {
      const bool cut = running.next + 1 < running.tokens.size();
      chunk.finish = Finish{cut ? FinishReason::kLength : FinishReason::kStop, {}};
      if (!cut) chunk.finish->stop_reason = int32_t{7};
    }
    return chunk;
  }

  Classification classification(const GenerateRequest& request) const {
    Classification out;
    out.head = request.head.value_or("default");
    out.labels = {"cat", "dog", "owl"};
    out.logits = {0.0f, 2.0f, 1.0f};
    out.probs = {0.125f, 0.625f, 0.25f};
    out.best = 1;
    return out;
  }

  static std::function<void()> done_call(std::shared_ptr<ResponseSink> sink, int prompt_tokens,
                                         int tokens) {
    FinalInfo info;
    info.usage = {prompt_tokens, tokens, 2};
    info.timings = {0.1, 0.2, 0.3, 0.3, 0.6};
    for (int i = 0; i < prompt_tokens; ++i) info.prompt_token_ids.push_back(i);
    return [sink = std::move(sink), info] { sink->on_done(info); };
  }

  const size_t max_queued_;
  ModelCard model_;
  mutable std::mutex mutex_;
  std::mutex step_mutex_;
  std::condition_variable changed_;
  std::map<RequestHandle, Running> running_;
  std::map<std::string, AdapterCard> adapters_;
  GenerateRequest last_request_;
  RequestHandle handles_ = 0;
  uint64_t generation_ = 0;
  size_t cancelled_ = 0;
  uint64_t steps_ = 0;
  bool healthy_ = true;
  bool released_ = false;
  bool held_ = false;
  bool loads_held_ = false;
  std::vector<std::function<void()>> held_loads_;
  bool draining_ = false;
  bool ending_ = false;
  std::function<void()> drained_;
  StepObserver* observer_ = nullptr;
  std::thread thread_;
};

}  // namespace valora::server::testing
