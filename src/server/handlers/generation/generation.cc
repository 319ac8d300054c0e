#include "server/handlers/generation/generation.h"

#include <ctime>
#include <utility>

#include "server/handlers/adapters/default_adapter.h"
#include "server/handlers/caller.h"
#include "server/handlers/generation/generation_answer.h"
#include "server/openai/errors.h"
#include "server/tools/call_constraint.h"

namespace valora::server {

void start_generation(const Service& service, const HttpRequest& request, GenerationBody body,
                      const Caller& caller, Answer& answer) {
  if (auto calls = call_constraint(answer_style(service.tool_call_style(), body.tools), body.tools))
    body.constraint = std::move(calls);
  std::vector<GenerateRequest> parts;
  for (Prompt& prompt : body.prompts)
    parts.push_back({.id = request.id,
                     .client = service.client_of(request),
                     .prompt = std::move(prompt),
                     .sampling = body.sampling,
                     .constraint = body.constraint,
                     .thought = body.thinking.params,
                     .json_whitespace = body.json_whitespace,
                     .truncate_prompt_tokens = body.truncate_prompt_tokens});
  set_caller(parts, body.sharing, caller);
  answer.start(std::move(body.target), std::move(parts), caller);
}

namespace {

void generate(const std::shared_ptr<Service>& service, const HttpRequest& request,
              std::shared_ptr<Exchange> exchange, const AnswerFormat& format,
              Result<GenerationBody> parsed) {
  if (!parsed.ok()) return exchange->respond(error_response(parsed.error()));
  GenerationBody& body = *parsed;
  set_default_adapter(*service, body);
  const auto caller = caller_of(*service, request, body.target, body.sharing);
  if (!caller.ok()) return exchange->respond(refuse_caller(caller.error()));
  AnswerHead head{format.id_prefix() + request.id, std::time(nullptr),
                  service->model_name_of(body.target)};
  const auto answer =
      make_generation_answer(service, std::move(exchange), std::move(head), format, body);
  start_generation(*service, request, std::move(body), *caller, *answer);
}

}  // namespace

void answer_chat(const std::shared_ptr<Service>& service, const HttpRequest& request,
                 std::shared_ptr<Exchange> exchange, Result<GenerationBody> body) {
  generate(service, request, std::move(exchange), chat_format(), std::move(body));
}

void handle_chat(const std::shared_ptr<Service>& service, HttpRequest request,
                 std::shared_ptr<Exchange> exchange) {
  const RequestLimits limits = service->request_limits(request);
  if (mentions_skills(request.body)) {
    auto skills = parse_skills(request.body, limits);
    if (!skills.ok()) return exchange->respond(error_response(skills.error()));
    if (*skills) return answer_skills(service, request, std::move(exchange), std::move(**skills));
  }
  answer_chat(service, request, std::move(exchange), parse_chat(request.body, limits));
}

void handle_completion(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange) {
  generate(service, request, std::move(exchange), completion_format(),
           parse_completion(request.body, service->request_limits(request)));
}

}  // namespace valora::server
