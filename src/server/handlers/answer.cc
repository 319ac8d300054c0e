#include "server/handlers/answer.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "server/handlers/adapter_resolver.h"
#include "server/openai/errors.h"

namespace valora::server {

using SteadyClock = std::chrono::steady_clock;

namespace {

Error queue_full() {
  return {ErrorCode::kQueueFull,
          "the queue is full of choices (n times the prompts) that wait; try again later",
          {}};
}

}  // namespace

// The engine calls it on its own threads, so it only posts to the exchange's executor.
class Answer::PartSink final : public ResponseSink {
 public:
  // Takes over the request's share of the waiting choices.
  PartSink(std::shared_ptr<Answer> answer, size_t part, const GenerateRequest& request)
      : answer_(std::move(answer)),
        part_(part),
        activity_(answer_->service_->metrics.adapter_activity, request.adapters),
        waiting_choices_(request.sampling.n),
        begun_(static_cast<size_t>(request.sampling.n)) {}
  ~PartSink() override { waits_no_more(); }

  void accepted() { activity_.accepted(); }

  void on_start(const Usage& usage) override {
    activity_.started();
    waits_no_more();
    answer_->exchange_->post(
        [answer = answer_, part = part_, usage] { answer->started(part, usage); });
  }
  void on_output(OutputChunk chunk) override {
    note_first_token(chunk);
    answer_->exchange_->post(
        [answer = answer_, part = part_, chunk = std::move(chunk),
         at = SteadyClock::now()]() mutable { answer->output(part, std::move(chunk), at); });
  }
  void on_classification(Classification classification) override {
    answer_->exchange_->post(
        [answer = answer_, part = part_, classification = std::move(classification)]() mutable {
          if (!answer->ended_) answer->on_classification(part, std::move(classification));
        });
  }
  void on_done(const FinalInfo& info) override {
    activity_.ended();
    answer_->exchange_->post([answer = answer_, part = part_, info] { answer->done(part, info); });
  }
  void on_error(const Error& error) override {
    activity_.ended();
    answer_->exchange_->post([answer = answer_, error] { answer->failed(error); });
  }

 private:
  // On the engine thread, before the step is reported.
  void note_first_token(const OutputChunk& chunk) {
    const auto index = static_cast<size_t>(chunk.index);
    if (chunk.tokens.empty() || index >= begun_.size() || begun_[index]) return;
    begun_[index] = true;
    answer_->service_->metrics.first_token();
  }
  void waits_no_more() { answer_->service_->waiting.give_back(waiting_choices_.exchange(0)); }

  const std::shared_ptr<Answer> answer_;
  const size_t part_;
  AdapterActivity::Request activity_;
  std::atomic<int> waiting_choices_;
  std::vector<bool> begun_;  // by sequence
};

Answer::Answer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange,
               AnswerHead head)
    : service_(std::move(service)),
      exchange_(std::move(exchange)),
      head_(std::move(head)),
      arrived_(SteadyClock::now()) {}

void Answer::start(Target target, std::vector<GenerateRequest> requests,
                   ServedApplication* application) {
  target_ = std::move(target);
  const std::vector<AdapterUse> uses = service_->adapters_of(target_);
  int choices = 0;
  for (GenerateRequest& request : requests) {
    Part& part = parts_.emplace_back();
    part.last_token.resize(static_cast<size_t>(request.sampling.n));
    part.generated.resize(static_cast<size_t>(request.sampling.n));
    part.max_tokens = request.sampling.max_tokens;
    request.adapters = uses;
    request.head = target_.head;
    choices += request.sampling.n;
  }
  if (const auto refusal = application_.admit(application))
    return exchange_->respond(error_response(refusal->error, refusal->retry_seconds));
  if (!service_->waiting.take(choices)) return fail(queue_full());
  Sinks sinks;
  for (size_t i = 0; i < requests.size(); ++i)
    sinks.push_back(std::make_shared<PartSink>(shared_from_this(), i, requests[i]));
  std::vector<std::string> missing = service_->resolver->missing(uses);
  if (missing.empty()) return submit(std::move(requests), sinks, {});
  // The load may end after the server has stopped. Its executor then drops the posted work.
  auto waiting = std::make_shared<std::vector<GenerateRequest>>(std::move(requests));
  service_->resolver->load(std::move(missing),
                           [self = shared_from_this(), waiting, sinks](const Status& resolved) {
                             self->exchange_->post([self, waiting, sinks, resolved] {
                               self->submit(std::move(*waiting), sinks, resolved);
                             });
                           });
}

void Answer::submit(std::vector<GenerateRequest> requests, const Sinks& sinks,
                    const Status& resolved) {
  std::vector<RequestHandle> handles;
  std::optional<Error> refused;
  for (size_t i = 0; i < requests.size() && !refused; ++i) {
    const auto handle = service_->engine.submit(std::move(requests[i]), sinks[i]);
    if (!handle.ok()) {
      refused = refusal(handle.error(), resolved);
      continue;
    }
    sinks[i]->accepted();
    handles.push_back(*handle);
  }
  exchange_->post([self = shared_from_this(), handles = std::move(handles),
                   refused = std::move(refused)] { self->submitted(handles, refused); });
}

Error Answer::refusal(const Error& error, const Status& resolved) const {
  if (error.code != ErrorCode::kNotFound) return error;
  if (!resolved.ok()) return resolved.error();
  if (target_.from_lora_path)
    return not_found("\"lora_path\" must be the name of an adapter, not a path: " + error.message,
                     "lora_path");
  return target_.lora.empty() ? model_not_found(target_.model) : error;
}

void Answer::submitted(const std::vector<RequestHandle>& handles,
                       const std::optional<Error>& refused) {
  for (size_t i = 0; i < handles.size(); ++i) parts_[i].handle = handles[i];
  if (ended_) return cancel_rest();  // a part failed in the meantime
  if (refused) return failed(*refused);
  exchange_->on_client_left([self = shared_from_this()] { self->client_left(); });
}

void Answer::started(size_t part, const Usage& usage) {
  if (ended_) return;
  parts_[part].usage.prompt_tokens = usage.prompt_tokens;
  parts_[part].usage.cached_tokens = usage.cached_tokens;
  service_->metrics.prompt_scheduled(usage);
  parts_[part].started = true;
  // The media are decoded by now, so the request body is no longer needed.
  if (std::all_of(parts_.begin(), parts_.end(), [](const Part& each) { return each.started; }))
    exchange_->release_body();
}

void Answer::output(size_t part, OutputChunk chunk, Time at) {
  if (ended_ || chunk.index < 0 || chunk.index >= static_cast<int>(parts_[part].last_token.size()))
    return;
  application_.first_output();
  parts_[part].usage.completion_tokens += static_cast<int>(chunk.tokens.size());
  parts_[part].generated[chunk.index] += static_cast<int>(chunk.tokens.size());
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
  service_->metrics.request_finished(
      info, {static_cast<int>(part.generated.size()), part.max_tokens,
             *std::max_element(part.generated.begin(), part.generated.end())});
  part.done = true;
  part.usage = info.usage;
  part.info = std::move(info);
  for (const Part& other : parts_)
    if (!other.done) return;
  ended_ = true;
  on_all_done();
  application_.answered(latency());
}

AnswerLatency Answer::latency() const {
  AnswerLatency longest;
  for (const Part& part : parts_) {
    const RequestTimings& timings = part.info.timings;
    const int tokens = *std::max_element(part.generated.begin(), part.generated.end());
    longest.ttft = std::max(longest.ttft, timings.ttft_seconds);
    longest.e2e = std::max(longest.e2e, timings.e2e_seconds);
    if (tokens > 1) longest.tpot = std::max(longest.tpot, timings.decode_seconds / (tokens - 1));
  }
  return longest;
}

void Answer::failed(const Error& error) {
  if (std::exchange(ended_, true)) return;
  cancel_rest();
  // Only a stopping server cancels requests by itself. It closes the connection without an answer.
  if (error.code == ErrorCode::kCancelled) return exchange_->abort();
  fail(error);
}

// The first end of application_ counts: done() calls answered() in vain after this.
void Answer::fail(const Error& error) {
  if (error.code == ErrorCode::kQueueFull)
    application_.refused();
  else
    application_.failed();
  on_failed(error);
}

void Answer::on_failed(const Error& error) { exchange_->respond(error_response(error)); }

void Answer::client_left() {
  if (std::exchange(ended_, true)) return;
  application_.failed();
  cancel_rest();
}

void Answer::cancel_rest() {
  for (const Part& part : parts_)
    if (part.handle && !part.done) {
      service_->engine.cancel(*part.handle);
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
