#include "server/handlers/generation/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "server/handlers/adapters/adapter_resolver.h"
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

// Called on engine threads, so it only posts to the exchange's executor.
class Answer::PartSink final : public ResponseSink {
 public:
  PartSink(std::shared_ptr<Answer> answer, size_t part, const GenerateRequest& request)
      : answer_(std::move(answer)),
        part_(part),
        client_(request.client),
        activity_(answer_->service_->metrics.adapter_activity, request.adapters),
        begun_(static_cast<size_t>(request.sampling.n)) {}
  ~PartSink() override { end_waiting(); }

  // Takes ownership of this many of the waiting choices.
  void waits_with(int choices) { waiting_choices_ = choices; }
  void accepted() { activity_.accepted(); }

  void on_start(const Usage& usage, const PromptTokens& prompt) override {
    end_waiting();
    or_abort([&] {
      activity_.started();
      answer_->exchange_->post([answer = answer_, part = part_, usage, prompt] {
        answer->started(part, usage, prompt);
      });
    });
  }
  void on_output(OutputChunk chunk) override {
    or_abort([&] {
      note_first_token(chunk);
      answer_->exchange_->post(
          [answer = answer_, part = part_, chunk = std::move(chunk),
           at = SteadyClock::now()]() mutable { answer->output(part, std::move(chunk), at); });
    });
  }
  void on_classification(Classification classification) override {
    or_abort([&] {
      answer_->exchange_->post(
          [answer = answer_, part = part_, classification = std::move(classification)]() mutable {
            if (!answer->ended_) answer->on_classification(part, std::move(classification));
          });
    });
  }
  void on_embedding(std::vector<float> values) override {
    or_abort([&] {
      answer_->exchange_->post(
          [answer = answer_, part = part_, values = std::move(values)]() mutable {
            if (!answer->ended_) answer->on_embedding(part, std::move(values));
          });
    });
  }
  void on_done(const FinalInfo& info) override {
    activity_.ended();
    or_abort([&] {
      answer_->exchange_->post(
          [answer = answer_, part = part_, info] { answer->done(part, info); });
    });
  }
  void on_error(const Error& error) override {
    activity_.ended();
    or_abort(
        [&] { answer_->exchange_->post([answer = answer_, error] { answer->failed(error); }); });
  }

 private:
  // If memory runs out while an event is passed on, the answer can no longer be completed, so it is
  // aborted.
  template <typename Work>
  void or_abort(Work work) noexcept {
    try {
      work();
    } catch (const std::exception&) {
      answer_->exchange_->abort();
    }
  }
  // Runs on the engine thread, before the step is reported.
  void note_first_token(const OutputChunk& chunk) {
    const auto index = static_cast<size_t>(chunk.index);
    if (chunk.tokens.empty() || index >= begun_.size() || begun_[index]) return;
    begun_[index] = true;
    answer_->service_->metrics.first_token();
  }
  void end_waiting() {
    answer_->service_->waiting.give_back(client_, waiting_choices_.exchange(0));
  }

  const std::shared_ptr<Answer> answer_;
  const size_t part_;
  const std::string client_;
  AdapterActivity::Request activity_;
  std::atomic<int> waiting_choices_ = 0;
  std::vector<bool> begun_;  // by sequence
};

Answer::Answer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange,
               AnswerHead head)
    : service_(std::move(service)),
      exchange_(std::move(exchange)),
      head_(std::move(head)),
      arrived_(SteadyClock::now()) {}

Answer::~Answer() { service_->answers.give_back(kept_); }

bool Answer::keep(size_t bytes) {
  if (service_->answers.take(kept_, bytes)) {
    kept_ += bytes;
    return true;
  }
  failed({ErrorCode::kUnavailable,
          "the answer is too large while other answers are incomplete; stream it, or ask for fewer "
          "choices, tokens or log probabilities",
          {}});
  return false;
}

void Answer::start(Target target, std::vector<GenerateRequest> requests, const Caller& caller) {
  target_ = std::move(target);
  const std::vector<AdapterUse>& uses = uses_ = service_->adapters_of(target_);
  int choices = 0;
  const auto group = requests.size() > 1 ? std::make_shared<RequestGroup>() : nullptr;
  for (GenerateRequest& request : requests) {
    request.group = group;
    Part& part = parts_.emplace_back();
    part.last_token.resize(static_cast<size_t>(request.sampling.n));
    part.generated.resize(static_cast<size_t>(request.sampling.n));
    part.max_tokens = request.sampling.max_tokens;
    request.adapters = uses;
    if (!request.head) request.head = target_.head;  // judges ask the language model
    choices += request.sampling.n;
  }
  if (const Status admitted = user_.begin(caller.user, most_tokens(requests)); !admitted.ok())
    return exchange_->respond(error_response(admitted.error()));
  if (const auto refusal = application_.admit(caller.application))
    return exchange_->respond(error_response(refusal->error, refusal->retry_seconds));
  Sinks sinks;
  for (size_t i = 0; i < requests.size(); ++i)
    sinks.push_back(std::make_shared<PartSink>(shared_from_this(), i, requests[i]));
  if (!service_->waiting.take(requests.front().client, choices)) {
    user_.end();
    return fail(queue_full());
  }
  for (size_t i = 0; i < requests.size(); ++i) sinks[i]->waits_with(requests[i].sampling.n);
  std::vector<std::string> missing = service_->resolver->missing(uses);
  if (missing.empty()) return submit(std::move(requests), sinks, {});
  // The load may end after the server has stopped. Its executor then drops the posted work.
  auto waiting = std::make_shared<std::vector<GenerateRequest>>(std::move(requests));
  service_->resolver->load(std::move(missing),
                           [self = shared_from_this(), waiting, sinks](const Status& resolved) {
                             try {
                               self->exchange_->post([self, waiting, sinks, resolved] {
                                 self->submit(std::move(*waiting), sinks, resolved);
                               });
                             } catch (const std::exception&) {
                               self->exchange_->abort();
                             }
                           });
}

void Answer::submit(std::vector<GenerateRequest> requests, const Sinks& sinks,
                    const Status& resolved) {
  const auto handles = std::make_shared<std::vector<RequestHandle>>();
  handles->reserve(requests.size());
  std::optional<Error> refused;
  try {
    for (size_t i = 0; i < requests.size() && !refused; ++i) {
      const auto handle = service_->engine.submit(std::move(requests[i]), sinks[i]);
      if (!handle.ok()) {
        refused = refusal(handle.error(), resolved);
        continue;
      }
      handles->push_back(*handle);
      sinks[i]->accepted();
    }
    exchange_->post([self = shared_from_this(), handles, refused = std::move(refused)] {
      self->submitted(*handles, refused);
    });
  } catch (const std::exception&) {
    for (const RequestHandle handle : *handles) service_->engine.cancel(handle);
    throw;
  }
}

Error Answer::refusal(const Error& error, const Status& resolved) const {
  if (error.code != ErrorCode::kNotFound) return error;
  if (!resolved.ok()) return resolved.error();
  if (!target_.default_adapter.empty())
    return not_found(fmt::format("the adapter `{}` answers conversations with such media, and is "
                                 "not loaded",
                                 target_.default_adapter),
                     "model");
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
  exchange_->on_disconnect([self = shared_from_this()] { self->on_client_disconnect(); });
}

void Answer::started(size_t part, const Usage& usage, const PromptTokens& prompt) {
  if (ended_) return;
  parts_[part].prompt = prompt;
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
  parts_[part].usage.thought_tokens += chunk.thought_tokens;
  parts_[part].generated[chunk.index] += static_cast<int>(chunk.tokens.size());
  measure(parts_[part], chunk, at);
  on_output(part, std::move(chunk));
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
  part.prompt.reset();
  for (const Part& other : parts_)
    if (!other.done) return;
  ended_ = true;
  user_.end();
  on_all_done();
  service_->metrics.latencies.add(latency());
  service_->metrics.adapter_counts.answered(uses_, usage(), latency());
  application_.answered(latency());
}

void Answer::failed(const Error& error) {
  if (std::exchange(ended_, true)) return;
  user_.end();
  cancel_rest();
  // Only a server that is stopping cancels requests on its own. It closes the connection without an
  // answer.
  if (error.code == ErrorCode::kCancelled) return exchange_->abort();
  fail(error);
}

// application_ records only its first end, so the answered() call in done() has no effect after
// this.
void Answer::fail(const Error& error) {
  if (error.code == ErrorCode::kQueueFull)
    application_.refused();
  else
    application_.failed();
  on_failed(error);
}

void Answer::on_failed(const Error& error) { exchange_->respond(error_response(error)); }

void Answer::on_client_disconnect() {
  if (std::exchange(ended_, true)) return;
  user_.end();
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

}  // namespace valora::server
