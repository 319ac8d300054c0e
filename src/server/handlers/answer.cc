#include "server/handlers/answer.h"

#include <algorithm>
#include <utility>

#include "server/handlers/adapter_resolver.h"
#include "server/openai/errors.h"

namespace valora::server {

using Clock = std::chrono::steady_clock;

// Called on engine threads: only passes on.
class Answer::PartSink final : public ResponseSink {
 public:
  PartSink(std::shared_ptr<Answer> answer, size_t part) : answer_(std::move(answer)), part_(part) {}

  void on_start(const Usage& usage) override {
    answer_->exchange_->post(
        [answer = answer_, part = part_, usage] { answer->started(part, usage); });
  }
  void on_output(OutputChunk chunk) override {
    answer_->exchange_->post(
        [answer = answer_, part = part_, chunk = std::move(chunk), at = Clock::now()]() mutable {
          answer->output(part, std::move(chunk), at);
        });
  }
  void on_classification(Classification classification) override {
    answer_->exchange_->post(
        [answer = answer_, part = part_, classification = std::move(classification)]() mutable {
          if (!answer->ended_) answer->on_classification(part, std::move(classification));
        });
  }
  void on_done(const FinalInfo& info) override {
    answer_->exchange_->post([answer = answer_, part = part_, info] { answer->done(part, info); });
  }
  void on_error(const Error& error) override {
    answer_->exchange_->post([answer = answer_, error] { answer->failed(error); });
  }

 private:
  const std::shared_ptr<Answer> answer_;
  const size_t part_;
};

Answer::Answer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange,
               AnswerHead head)
    : service_(std::move(service)),
      exchange_(std::move(exchange)),
      head_(std::move(head)),
      arrived_(Clock::now()) {}

void Answer::start(Target target, std::vector<GenerateRequest> requests) {
  target_ = std::move(target);
  const std::vector<AdapterUse> uses = service_->adapters_of(target_);
  for (GenerateRequest& request : requests) {
    Part part;
    part.last_token.resize(request.sampling.n);
    part.request = std::move(request);
    part.request.adapters = uses;
    part.request.head = target_.head;
    parts_.push_back(std::move(part));
  }
  service_->resolver->resolve(uses, [self = shared_from_this()](const Status& status) {
    self->exchange_->post([self, status] { self->submit(status); });
  });
}

void Answer::submit(const Status& resolved) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    auto handle = service_->engine.submit(std::move(part.request),
                                          std::make_shared<PartSink>(shared_from_this(), i));
    if (!handle.ok()) {
      const bool unknown = handle.error().code == ErrorCode::kNotFound;
      if (unknown && !resolved.ok()) return failed(resolved.error());
      return failed(unknown && target_.lora.empty() ? model_not_found(target_.model)
                                                    : handle.error());
    }
    part.handle = *handle;
    part.submitted = true;
  }
  exchange_->on_client_left([self = shared_from_this()] { self->client_left(); });
}

void Answer::started(size_t part, const Usage& usage) {
  if (ended_) return;
  parts_[part].usage.prompt_tokens = usage.prompt_tokens;
  parts_[part].usage.cached_tokens = usage.cached_tokens;
  service_->metrics.prompt_tokens(usage.prompt_tokens);
  parts_[part].started = true;
  // Media are prepared by now, and their text is gone.
  if (std::all_of(parts_.begin(), parts_.end(), [](const Part& each) { return each.started; }))
    exchange_->release_body();
}

void Answer::output(size_t part, OutputChunk chunk, Time at) {
  if (ended_ || chunk.index < 0 || chunk.index >= static_cast<int>(parts_[part].last_token.size()))
    return;
  parts_[part].usage.completion_tokens += static_cast<int>(chunk.tokens.size());
  measure(parts_[part], chunk, at);
  on_output(part, std::move(chunk));
}

void Answer::measure(Part& part, const OutputChunk& chunk, Time at) {
  Metrics& metrics = service_->metrics;
  if (chunk.finish) metrics.choice_finished(chunk.finish->reason);
  if (chunk.tokens.empty()) return;
  metrics.generation_tokens(static_cast<int>(chunk.tokens.size()));
  if (!std::exchange(part.first_token_seen, true))
    metrics.time_to_first_token(std::chrono::duration<double>(at - arrived_).count());
  std::optional<Time>& last = part.last_token[chunk.index];
  if (last) metrics.inter_token_latency(std::chrono::duration<double>(at - *last).count());
  last = at;
}

void Answer::done(size_t index, FinalInfo info) {
  if (ended_) return;
  Part& part = parts_[index];
  service_->metrics.request_finished(info);
  part.done = true;
  part.usage = info.usage;
  part.info = std::move(info);
  for (const Part& other : parts_)
    if (!other.done) return;
  ended_ = true;
  on_all_done();
}

void Answer::failed(Error error) {
  if (std::exchange(ended_, true)) return;
  cancel_rest();
  // Nobody is owed an answer that the server itself has broken off.
  if (error.code == ErrorCode::kCancelled) return exchange_->abort();
  on_failed(error);
}

void Answer::on_failed(const Error& error) { exchange_->respond(error_response(error)); }

void Answer::client_left() {
  if (std::exchange(ended_, true)) return;
  cancel_rest();
}

void Answer::cancel_rest() {
  for (const Part& part : parts_)
    if (part.submitted && !part.done) {
      service_->engine.cancel(part.handle);
      service_->metrics.choice_finished(FinishReason::kAbort);
    }
}

Usage Answer::usage() const {
  Usage sum;
  for (const Part& part : parts_) {
    sum.prompt_tokens += part.usage.prompt_tokens;
    sum.completion_tokens += part.usage.completion_tokens;
    sum.cached_tokens += part.usage.cached_tokens;
  }
  return sum;
}

}  // namespace valora::server
