// An Engine whose answers a function gives: for tests of what asks engines many things at once.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/engine.h"

namespace valora::generator::testing {

struct Reply {
  std::string text;
  std::vector<float> logprobs = {};
  std::optional<Classification> classification = {};
  std::optional<Error> error = {};  // instead of an answer
  double seconds = 0;
};

inline std::string question_of(const GenerateRequest& request) {
  for (const ContentPart& part : std::get<ChatPrompt>(request.prompt).messages.back().parts)
    if (const auto* text = std::get_if<std::string>(&part)) return *text;
  return {};
}

// Answers the newest request first, on a thread of its own, and only once `patience` requests are
// open or all of `total` have come: so that answers come out of order and concurrency shows.
class ScriptedEngine final : public Engine {
  template <typename Body>
  auto locked(Body body) const {
    const std::lock_guard lock(mutex_);
    return body();
  }

 public:
  using Script = std::function<Reply(const GenerateRequest&)>;

  ScriptedEngine(Script script, size_t total, size_t patience = 1)
      : script_(std::move(script)),
        total_(total),
        patience_(patience),
        thread_([this] { run(); }) {}
  ~ScriptedEngine() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void add_adapter(AdapterCard card) { adapters_.push_back(std::move(card)); }
  // submit() refuses the request that asks this.
  void refuse(std::string question) { refused_ = std::move(question); }
  // The error that loading gives.
  void fail_loading(Error error) { load_error_ = std::move(error); }

  size_t most_open() const {
    return locked([this] { return most_open_; });
  }
  size_t cancelled() const {
    return locked([this] { return cancelled_; });
  }
  size_t held_sinks() const {
    return locked([this] { return open_.size() + leaving_.size() + busy_; });
  }
  std::vector<GenerateRequest> requests() const {
    return locked([this] { return requests_; });
  }
  std::vector<std::string> loaded() const {
    return locked([this] { return loaded_; });
  }

  const ModelCard& model() const override { return model_; }
  Result<RequestHandle> submit(GenerateRequest request,
                               std::shared_ptr<ResponseSink> sink) override {
    if (!refused_.empty() && question_of(request) == refused_)
      return invalid("refused at the door");
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    const RequestHandle handle = requests_.size();
    open_.push_back({handle, std::move(request), std::move(sink)});
    most_open_ = std::max(most_open_, open_.size());
    changed_.notify_all();
    return handle;
  }
  // As in an engine that is just about to tell the sink something: it still hears it, then is let
  // go.
  void cancel(RequestHandle handle) override {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(open_, handle, &Open::handle);
    if (found == open_.end()) return;
    leaving_.push_back(std::move(found->sink));
    open_.erase(found);
    ++cancelled_;
    changed_.notify_all();
  }

  void load_adapter(LoadAdapter request, std::function<void(Result<AdapterCard>)> done) override {
    if (load_error_) return done(*load_error_);
    {
      const std::lock_guard lock(mutex_);
      loaded_.push_back(request.name);
    }
    AdapterCard card;
    card.name = request.name;
    card.path = request.path;
    card.heads = heads_;
    done(card);
  }
  void unload_adapter(std::string name, std::optional<uint64_t>,
                      std::function<void(Status)> done) override {
    {
      const std::lock_guard lock(mutex_);
      std::erase(loaded_, name);
    }
    done({});
  }
  // Of the adapters that are loaded from now on.
  void set_heads(decltype(AdapterCard::heads) heads) { heads_ = std::move(heads); }
  std::vector<AdapterCard> adapters() const override { return adapters_; }
  Result<std::vector<int32_t>> tokenize(const Prompt&, bool) const override {
    return std::vector<int32_t>{1};
  }
  Result<std::string> detokenize(const std::vector<int32_t>&) const override {
    return std::string();
  }
  EngineStats stats() const override { return {}; }
  void set_observer(StepObserver*) override {}
  bool healthy() const override { return true; }
  void drain(std::function<void()> done) override { done(); }

 private:
  struct Open {
    RequestHandle handle;
    GenerateRequest request;
    std::shared_ptr<ResponseSink> sink;
  };

  bool ready() const {
    return !open_.empty() && (open_.size() >= patience_ || requests_.size() == total_);
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ending_ || !leaving_.empty() || ready(); });
      if (!leaving_.empty()) {
        std::shared_ptr<ResponseSink> sink = take(leaving_);
        tell(lock, sink, [&] {
          sink->on_output({.index = 0, .text = "too late", .tokens = {}, .finish = {}});
        });
      } else if (ready()) {
        Open next = take(open_);
        tell(lock, next.sink, [&] { answer(next); });
      } else {
        return;
      }
    }
  }

  template <typename T>
  static T take(std::vector<T>& list) {
    T last = std::move(list.back());
    list.pop_back();
    return last;
  }

  // Without the lock; the sink is let go once nothing more is said to it.
  template <typename Body>
  void tell(std::unique_lock<std::mutex>& lock, std::shared_ptr<ResponseSink>& sink, Body body) {
    ++busy_;
    lock.unlock();
    std::this_thread::yield();
    body();
    lock.lock();
    --busy_;
    lock.unlock();
    sink.reset();
    lock.lock();
  }

  void answer(const Open& open) {
    const Reply reply = script_(open.request);
    if (reply.error) return open.sink->on_error(*reply.error);
    OutputChunk chunk;
    chunk.text = reply.text;
    for (const float logprob : reply.logprobs) chunk.tokens.push_back({{0, "", logprob}, {}});
    chunk.finish = Finish{};
    if (reply.classification)
      open.sink->on_classification(*reply.classification);
    else
      open.sink->on_output(std::move(chunk));
    FinalInfo info;
    info.usage = {10, static_cast<int>(reply.logprobs.size()), 0};
    info.timings.e2e_seconds = reply.seconds;
    open.sink->on_done(info);
  }

  const Script script_;
  const size_t total_, patience_;
  std::string refused_;
  std::optional<Error> load_error_;
  std::vector<AdapterCard> adapters_;
  decltype(AdapterCard::heads) heads_;
  ModelCard model_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Open> open_;
  std::vector<std::shared_ptr<ResponseSink>> leaving_;
  std::vector<GenerateRequest> requests_;
  std::vector<std::string> loaded_;
  size_t most_open_ = 0, cancelled_ = 0, busy_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace valora::generator::testing
