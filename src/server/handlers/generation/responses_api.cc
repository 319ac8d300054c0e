#include "server/handlers/handlers.h"

#include <ctime>
#include <utility>

#include "server/handlers/adapters/default_adapter.h"
#include "server/handlers/caller.h"
#include "server/handlers/generation/generation.h"
#include "server/handlers/generation/generation_answer.h"
#include "server/openai/errors.h"
#include "server/openai/response_input.h"
#include "server/openai/response_object.h"

namespace valora::server {
namespace {

class ResponsesAnswer final : public GenerationAnswer {
 public:
  ResponsesAnswer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange,
                  AnswerHead head, const ResponseBody& body)
      : GenerationAnswer(std::move(service), std::move(exchange), head, body.chat),
        stream_(body.chat.stream),
        media_paths_(body.media_paths),
        writer_(std::move(head), body.repeated) {}

 private:
  void on_part(int, ChoicePart part) override {
    if (part.chunk.finish) finish_ = *part.chunk.finish;
    if (part.chunk.text.empty() && part.chunk.thought.empty() && part.calls.empty()) return;
    // Streams buffer the text as well, because their last event repeats it.
    if (!keep(text_bytes(part))) return;
    begin();
    writer_.add(part.chunk.thought, part.chunk.text, part.calls);
    flush();
  }

  void on_all_finished() override {
    begin();
    writer_.finish(finish_, usage());
    flush();
    if (!stream_) return exchange_->respond({.body = to_text(writer_.object())});
    exchange_->end_stream();
  }

  void on_failed(const Error& failure) override {
    const Error error = in_response(failure, media_paths_);
    if (!begun_ || !stream_) return Answer::on_failed(error);
    writer_.fail(OrderedJson::parse(error_json(error)).at("error"));
    flush();
    exchange_->end_stream();
  }

  // The HTTP status is not sent before the first part, so it can still report an error.
  void begin() {
    if (std::exchange(begun_, true)) return;
    writer_.begin();
    if (stream_) begin_events();
  }

  void flush() {
    std::string events = writer_.take_events();
    if (stream_) exchange_->write(std::move(events));
  }

  const bool stream_;
  const MediaPaths media_paths_;
  ResponseWriter writer_;
  Finish finish_;
  bool begun_ = false;
};

}  // namespace

void handle_responses(const std::shared_ptr<Service>& service, HttpRequest request,
                      std::shared_ptr<Exchange> exchange) {
  auto body = parse_response(request.body, service->request_limits(request));
  if (!body.ok()) return exchange->respond(error_response(body.error()));
  set_default_adapter(*service, body->chat);
  const auto caller = caller_of(*service, request, body->chat.target, body->chat.sharing);
  if (!caller.ok()) return exchange->respond(refuse_caller(caller.error()));
  AnswerHead head{"resp_" + request.id, std::time(nullptr),
                  service->model_name_of(body->chat.target)};
  const auto answer =
      std::make_shared<ResponsesAnswer>(service, std::move(exchange), std::move(head), *body);
  start_generation(*service, request, std::move(body->chat), *caller, *answer);
}

}  // namespace valora::server
