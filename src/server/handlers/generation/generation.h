// /v1/chat/completions and /v1/completions. The answer is one JSON object or a stream of
// server-sent events.
#pragma once

#include <memory>

#include "server/handlers/generation/answer.h"
#include "server/handlers/service.h"
#include "server/openai/requests.h"
#include "server/openai/skills.h"

namespace valora::server {

void handle_chat(const std::shared_ptr<Service>& service, HttpRequest request,
                 std::shared_ptr<Exchange> exchange);
void handle_completion(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange);

// Answers a chat that is already parsed.
void answer_chat(const std::shared_ptr<Service>& service, const HttpRequest& request,
                 std::shared_ptr<Exchange> exchange, Result<GenerationBody> body);

// Submits the body's prompts, constrained to the form that its tools require. Also used by
// /v1/responses.
void start_generation(const Service& service, const HttpRequest& request, GenerationBody body,
                      const Caller& caller, Answer& answer);

// One conversation answered by several models: chats with "skills", and /v1/analyze
// (docs/skills.md). Each skill is answered as a chat of its own.
//
// Sends an object with the answer of each skill, or, if the body asks for a stream, each answer
// once it is whole.
void answer_skills(const std::shared_ptr<Service>& service, const HttpRequest& request,
                   std::shared_ptr<Exchange> exchange, SkillsBody body);

void handle_analyze(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
