#include "generator/engine_requests.h"

#include <condition_variable>
#include <memory>
#include <mutex>

#include "generator/stopped.h"

namespace valora::generator {
namespace {

constexpr int kNoRequest = -1;  // for a failure that belongs to no request

// State shared by the sinks of one call.
class Round {
 public:
  explicit Round(int count) : answers_(static_cast<size_t>(count)) {}

  void open() {
    const std::lock_guard lock(mutex_);
    ++open_;
    ++sinks_;
  }
  void answered(int index, EngineAnswer answer) {
    const std::lock_guard lock(mutex_);
    answers_[static_cast<size_t>(index)] = std::move(answer);
    --open_;
    ++done_;
    changed_.notify_all();
  }
  void failed(int index, const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = {index, error};
    changed_.notify_all();
  }
  void stop() { failed(kNoRequest, stopped()); }
  void on_sink_destroyed() {
    const std::lock_guard lock(mutex_);
    --sinks_;
    changed_.notify_all();
  }

  // Waits until at most `most` requests are open. Returns false if one has failed.
  bool wait(int most, const std::function<void(int, int)>& progress) {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return failure_ || open_ <= most || done_ != told_; });
      if (done_ == told_ || !progress) {
        told_ = done_;
        if (failure_) return false;
        if (open_ <= most) return true;
        continue;
      }
      const int done = told_ = done_;
      lock.unlock();
      progress(done, static_cast<int>(answers_.size()));
      lock.lock();
    }
  }
  void wait_for_sinks() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return sinks_ == 0; });
  }

  struct Failure {
    int index;
    Error error;
  };
  // Valid once all sinks are released.
  const std::optional<Failure>& failure() const { return failure_; }
  std::vector<EngineAnswer> take_answers() { return std::move(answers_); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<EngineAnswer> answers_;
  std::optional<Failure> failure_;
  int open_ = 0, done_ = 0, told_ = 0;
  int sinks_ = 0;  // still held by the engine
};

class AnswerSink final : public ResponseSink {
 public:
  AnswerSink(std::shared_ptr<Round> round, int index) : round_(std::move(round)), index_(index) {
    round_->open();
  }
  ~AnswerSink() override { round_->on_sink_destroyed(); }

  void on_output(OutputChunk chunk) override {
    answer_.text += chunk.text;
    for (const TokenOutput& token : chunk.tokens) answer_.logprobs.push_back(token.chosen.logprob);
    if (!chunk.prompt) return;
    for (size_t i = 1; i < chunk.prompt->size(); ++i)
      answer_.prompt_logprobs.push_back((*chunk.prompt)[i].chosen.logprob);
  }
  void on_classification(Classification result) override {
    answer_.classification = std::move(result);
  }
  void on_done(const FinalInfo& info) override {
    answer_.usage = info.usage;
    answer_.seconds = info.timings.e2e_seconds;
    round_->answered(index_, std::move(answer_));
  }
  void on_error(const Error& error) override { round_->failed(index_, error); }

 private:
  const std::shared_ptr<Round> round_;
  const int index_;
  EngineAnswer answer_;
};

Result<RequestHandle> submit(Engine& engine, const EngineRequests& requests,
                             const std::shared_ptr<Round>& round, int index) {
  VALORA_TRY(request, requests.make(index));
  return engine.submit(std::move(request), std::make_shared<AnswerSink>(round, index));
}

}  // namespace

Result<std::vector<EngineAnswer>> ask_all(Engine& engine, const EngineRequests& requests) {
  if (requests.concurrency < 1) return invalid("the concurrency must be at least 1");
  const auto round = std::make_shared<Round>(requests.count);
  const std::stop_callback on_stop(requests.stop, [&round] { round->stop(); });
  std::vector<RequestHandle> handles;
  for (int i = 0; i < requests.count && round->wait(requests.concurrency - 1, requests.progress);
       ++i) {
    const auto handle = submit(engine, requests, round, i);
    if (handle.ok())
      handles.push_back(*handle);
    else
      round->failed(i, handle.error());
  }
  if (!round->wait(0, requests.progress))
    for (const RequestHandle handle : handles) engine.cancel(handle);
  round->wait_for_sinks();
  if (const auto& failure = round->failure(); failure && failure->index == kNoRequest)
    return failure->error;
  if (const auto& failure = round->failure())
    return Error{failure->error.code, requests.name(failure->index) + ": " + failure->error.message,
                 failure->error.param};
  return round->take_answers();
}

}  // namespace valora::generator
