// Runs one HTTP request in the engine. Submits one engine request per prompt, moves their events to
// the exchange's executor, cancels them if the client disconnects, and updates the metrics.
// Subclasses format the answer.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "api/answer.h"
#include "api/request.h"
#include "server/applications/application_request.h"
#include "server/handlers/caller.h"
#include "server/handlers/service.h"
#include "server/http/http.h"
#include "server/openai/responses.h"

namespace valora::server {

// start() runs on the caller's thread. Everything else runs on the exchange's executor, including
// events of the first parts while later parts are still being submitted. So there are no locks.
class Answer : public std::enable_shared_from_this<Answer> {
 public:
  virtual ~Answer();
  // Submits one engine request per prompt, within the caller's limits. Loads missing adapters first
  // if a resolver directory is set.
  void start(Target target, std::vector<GenerateRequest> requests, const Caller& caller);

 protected:
  Answer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange, AnswerHead head);

  virtual void on_output(size_t part, OutputChunk chunk) = 0;
  virtual void on_classification(size_t, Classification) {}
  virtual void on_embedding(size_t, std::vector<float>) {}  // NOLINT(performance-*): kept
  virtual void on_all_done() = 0;
  // Ends the answer after a part has failed. The default responds with the error.
  virtual void on_failed(const Error& error);
  // Called by on_all_done() if the answer is incomplete.
  void fail(const Error& error);

  // Call before buffering more of the answer. Returns false if too much is buffered already; the
  // answer has then failed.
  bool keep(size_t bytes);

  // Sum over all parts: counted from the chunks while a part runs, taken from the engine when it is
  // done.
  Usage usage() const;
  // The prompt of a part that has started.
  const std::vector<int32_t>& prompt_token_ids(size_t part) const {
    const Part& of = parts_[part];
    return of.prompt ? *of.prompt : of.info.prompt_token_ids;
  }
  size_t part_count() const { return parts_.size(); }

  const std::shared_ptr<Service> service_;
  const std::shared_ptr<Exchange> exchange_;
  const AnswerHead head_;

 private:
  class PartSink;
  using Time = std::chrono::steady_clock::time_point;
  struct Part {
    std::optional<RequestHandle> handle;  // set by submitted()
    bool started = false;
    bool done = false;
    Usage usage;
    PromptTokens prompt;  // set when the part starts, cleared when it ends
    FinalInfo info;
    bool first_token_seen = false;
    std::vector<std::optional<Time>> last_token;  // per sequence
    std::vector<int> generated;                   // tokens per sequence
    std::optional<int> max_tokens;
  };

  using Sinks = std::vector<std::shared_ptr<PartSink>>;
  void submit(std::vector<GenerateRequest> requests, const Sinks& sinks, const Status& resolved);
  int64_t most_tokens(const std::vector<GenerateRequest>& requests) const;
  Error refusal(const Error& error, const Status& resolved) const;
  void submitted(const std::vector<RequestHandle>& handles, const std::optional<Error>& refused);
  void started(size_t part, const Usage& usage, const PromptTokens& prompt);
  void output(size_t part, OutputChunk chunk, Time at);
  void done(size_t index, FinalInfo info);
  void failed(const Error& error);
  void on_client_disconnect();
  void cancel_rest();
  AnswerLatency latency() const;
  void measure(Part& part, const OutputChunk& chunk, Time at);

  std::vector<Part> parts_;
  Target target_;
  std::vector<AdapterUse> uses_;  // of each request
  const Time arrived_;
  bool ended_ = false;
  size_t kept_ = 0;  // bytes, in Service::answers
  ApplicationRequest application_;
  UserRequest user_;
};

}  // namespace valora::server
