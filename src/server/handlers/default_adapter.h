// The adapters of chats that name none and hold media (ServerOptions::default_adapters).
#pragma once

#include "api/engine.h"
#include "base/result.h"
#include "server/handlers/service.h"
#include "server/openai/requests.h"

namespace valora::server {

// Sets Target::default_adapter of a chat that names the base model alone. If the chat holds media
// of two kinds with different default adapters, it gets neither, as of vLLM.
void set_default_adapter(const Service& service, GenerationBody& body);

// kInvalidArgument if a default adapter is not loaded.
Status check_default_adapters(const DefaultAdapters& defaults, const Engine& engine);

}  // namespace valora::server
