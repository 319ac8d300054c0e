#include "lab/live/server_target.h"

#include <chrono>
#include <utility>

#include "lab/live/server_events.h"
#include "lab/serve/sse_reader.h"

namespace valora::bench {
namespace {

using TargetClock = std::chrono::steady_clock;

constexpr size_t kMaxErrorBody = size_t{1} << 20;

double since(TargetClock::time_point begin) {
  return std::chrono::duration<double>(TargetClock::now() - begin).count();
}

}  // namespace

struct ServerTarget::Call {
  Call(Question asked, std::shared_ptr<ResponseSink> to)
      : question(std::move(asked)), sink(std::move(to)) {}

  // Handles bytes of the response.
  void read(std::string_view bytes, int status) {
    if (status != 200) {
      if (refusal.size() < kMaxErrorBody) refusal += bytes;
      return;
    }
    events.feed(bytes, [this](std::string_view data) { on_event(data); });
  }

  void on_event(std::string_view data) {
    if (failure) return;
    auto event = read_event(data);
    if (!event.ok()) {
      failure = event.error();
      return;
    }
    whole = whole || event->last;
    if (event->chunk.tokens.empty() && event->chunk.text.empty()) return;
    last_token = since(begin);
    if (first_token == 0) first_token = last_token;
    sink->on_output(std::move(event->chunk));
  }

  void end(int status, const std::string& why) {
    if (!why.empty())
      failure = Error{ErrorCode::kUnavailable, why, "url"};
    else if (status != 200)
      failure = refusal_error(status, refusal);
    else if (!failure && !whole)
      failure = Error{ErrorCode::kUnavailable, "the stream ended early", "url"};
    if (failure) return sink->on_error(*failure);
    FinalInfo info;
    info.timings = {.decode_seconds = last_token - first_token,
                    .ttft_seconds = first_token,
                    .e2e_seconds = since(begin)};
    sink->on_done(info);
  }

  const Question question;
  const std::shared_ptr<ResponseSink> sink;
  const TargetClock::time_point begin = TargetClock::now();
  SseReader events;
  std::string refusal;  // body of a response that is not a stream
  std::optional<Error> failure;
  bool whole = false;                      // the stream was read to its end
  double first_token = 0, last_token = 0;  // seconds since `begin`; 0: none yet
};

ServerTarget::ServerTarget(const ServerAddress& address, std::string base, int timeout_seconds)
    : base_(std::move(base)),
      client_(address.url, address.api_key, timeout_seconds),
      thread_([this] { run(); }) {}

ServerTarget::~ServerTarget() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  client_.wake();
}

Status ServerTarget::submit(GenerateRequest request, std::shared_ptr<ResponseSink> sink) {
  VALORA_TRY(question, question_of(request, base_));
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::make_shared<Call>(std::move(question), std::move(sink)));
  }
  client_.wake();
  return {};
}

void ServerTarget::run() {
  for (;;) {
    std::vector<std::shared_ptr<Call>> fresh;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      fresh.swap(waiting_);
    }
    for (const auto& call : fresh) send(call);
    client_.poll(1);  // until there is something to read, or wake()
  }
}

void ServerTarget::send(const std::shared_ptr<Call>& call) {
  client_.start(
      {.path = call->question.path,
       .body = call->question.body,
       .on_bytes = [call](std::string_view bytes, int status) { call->read(bytes, status); },
       .on_done = [call](int status, const std::string& why) { call->end(status, why); }});
}

}  // namespace valora::bench
