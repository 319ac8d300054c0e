#include "server/handlers/generation.h"

#include <ctime>

#include "server/handlers/answer.h"
#include "server/handlers/application_of.h"
#include "server/openai/errors.h"
#include "server/openai/requests.h"
#include "server/openai/sse.h"

namespace valora::server {
namespace {

// Choices are numbered across all prompts: sequence i of prompt p is choice p * n + i.
class GenerationAnswer : public Answer {
 public:
  GenerationAnswer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange,
                   AnswerHead head, const AnswerFormat& format, const GenerationBody& body)
      : Answer(std::move(service), std::move(exchange), std::move(head)),
        format_(format),
        options_{body.logprobs, body.return_token_ids},
        n_(body.sampling.n),
        unfinished_(body.prompts.size() * body.sampling.n) {}

 protected:
  virtual void on_chunk(int choice, OutputChunk chunk) = 0;
  virtual void on_all_finished() = 0;

  const AnswerFormat& format_;
  const AnswerOptions options_;
  const int n_;

 private:
  void on_output(size_t part, OutputChunk chunk) final {
    if (chunk.finish) --unfinished_;
    const int choice = choice_index(part, chunk);
    on_chunk(choice, std::move(chunk));
  }
  // Without this check, a choice that the engine left out would be an empty answer.
  void on_all_done() final {
    if (unfinished_ == 0) return on_all_finished();
    fail(internal("the engine ended the request before all of its choices"));
  }
  int choice_index(size_t part, const OutputChunk& chunk) const {
    return static_cast<int>(part) * n_ + chunk.index;
  }

  size_t unfinished_;  // choices
};

class WholeAnswer final : public GenerationAnswer {
 public:
  WholeAnswer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange, AnswerHead head,
              const AnswerFormat& format, const GenerationBody& body)
      : GenerationAnswer(std::move(service), std::move(exchange), std::move(head), format, body),
        choices_(body.prompts.size() * body.sampling.n) {}

 private:
  void on_chunk(int index, OutputChunk chunk) override {
    Choice& choice = choices_[index];
    choice.text += chunk.text;
    if (options_.logprobs || options_.token_ids)
      std::move(chunk.tokens.begin(), chunk.tokens.end(), std::back_inserter(choice.tokens));
    if (chunk.finish) choice.finish = *chunk.finish;
  }

  void on_all_finished() override {
    OrderedJson answer = answer_head(head_, format_.object());
    OrderedJson& choices = answer["choices"] = OrderedJson::array();
    for (size_t i = 0; i < choices_.size(); ++i) {
      choices.push_back(format_.choice(static_cast<int>(i), choices_[i], options_));
      if (options_.token_ids) choices.back()["prompt_token_ids"] = prompt_token_ids(i / n_);
    }
    answer["usage"] = usage_json(usage());
    exchange_->respond({.body = to_text(answer)});
  }

  std::vector<Choice> choices_;
};

class StreamedAnswer final : public GenerationAnswer {
 public:
  StreamedAnswer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange,
                 AnswerHead head, const AnswerFormat& format, const GenerationBody& body)
      : GenerationAnswer(std::move(service), std::move(exchange), std::move(head), format, body),
        include_usage_(body.include_usage),
        continuous_usage_(body.continuous_usage),
        choices_(body.prompts.size() * body.sampling.n) {}

 private:
  struct ChoiceState {
    bool begun = false;
    size_t characters = 0;
  };

  void on_chunk(int index, OutputChunk chunk) override {
    if (chunk.text.empty() && chunk.tokens.empty() && !chunk.finish) return;
    ChoiceState& state = choices_[index];
    OrderedJson event = answer_head(head_, format_.chunk_object());
    event["choices"] = OrderedJson::array({format_.chunk(
        index, chunk, !std::exchange(state.begun, true), state.characters, options_)});
    if (continuous_usage_) event["usage"] = usage_json(usage());
    if (options_.logprobs) state.characters += characters(chunk.tokens);
    send(to_text(event));
  }

  void on_all_finished() override {
    if (include_usage_) {
      OrderedJson event = answer_head(head_, format_.chunk_object());
      event["choices"] = OrderedJson::array();
      event["usage"] = usage_json(usage());
      send(to_text(event));
    }
    end();
  }

  // Before the first token the HTTP status is not sent yet, so it can report the error.
  void on_failed(const Error& error) override {
    if (!begun_) return Answer::on_failed(error);
    send(error_json(error));
    end();
  }

  void send(const std::string& json) {
    if (!std::exchange(begun_, true))
      exchange_->begin_stream(
          {.content_type = "text/event-stream; charset=utf-8",
           .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}});
    exchange_->write(sse_event(json));
  }

  void end() {
    exchange_->write(std::string(kSseDone));
    exchange_->end_stream();
  }

  const bool include_usage_;
  const bool continuous_usage_;
  std::vector<ChoiceState> choices_;
  bool begun_ = false;
};

void generate(const std::shared_ptr<Service>& service, const HttpRequest& request,
              std::shared_ptr<Exchange> exchange, const AnswerFormat& format,
              Result<GenerationBody> parsed) {
  if (!parsed.ok()) return exchange->respond(error_response(parsed.error()));
  GenerationBody& body = *parsed;
  const auto application = application_of(*service, request, body.target, body.sharing);
  if (!application.ok()) return exchange->respond(refuse_application(application.error()));
  AnswerHead head{format.id_prefix() + request.id, std::time(nullptr),
                  service->model_name_of(body.target)};
  std::shared_ptr<Answer> answer;
  if (body.stream)
    answer = std::make_shared<StreamedAnswer>(service, std::move(exchange), std::move(head), format,
                                              body);
  else
    answer =
        std::make_shared<WholeAnswer>(service, std::move(exchange), std::move(head), format, body);
  std::vector<GenerateRequest> parts;
  for (Prompt& prompt : body.prompts)
    parts.push_back({.id = request.id,
                     .client = service->client_of(request),
                     .prompt = std::move(prompt),
                     .sampling = body.sampling,
                     .constraint = body.constraint});
  set_sharing(parts, body.sharing, *application);
  answer->start(std::move(body.target), std::move(parts), *application);
}

}  // namespace

void handle_chat(const std::shared_ptr<Service>& service, HttpRequest request,
                 std::shared_ptr<Exchange> exchange) {
  generate(service, request, std::move(exchange), chat_format(),
           parse_chat(request.body, service->engine.model().media_limits));
}

void handle_completion(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange) {
  generate(service, request, std::move(exchange), completion_format(),
           parse_completion(request.body));
}

}  // namespace valora::server
