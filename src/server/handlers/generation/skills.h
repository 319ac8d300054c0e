// One conversation answered by several models: chats with "skills", and /v1/analyze
// (docs/skills.md). Each skill is answered as a chat of its own.
#pragma once

#include <memory>

#include "server/handlers/service.h"
#include "server/openai/skills.h"

namespace valora::server {

// Sends an object with the answer of each skill, or, if the body asks for a stream, each answer
// once it is whole.
void answer_skills(const std::shared_ptr<Service>& service, const HttpRequest& request,
                   std::shared_ptr<Exchange> exchange, SkillsBody body);

void handle_analyze(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
