// Parses the fields that affect how a conversation becomes a prompt: "chat_template",
// "mm_processor_kwargs" and "media_io_kwargs". The prompt must already have its messages.
#pragma once

#include "api/request.h"
#include "base/json/json.h"
#include "base/result.h"
#include "server/openai/request_limits.h"

namespace valora::server {

Status parse_rendering(const Json& body, const RequestLimits& limits, ChatPrompt& prompt);

}  // namespace valora::server
