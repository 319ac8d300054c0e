// Chooses the adapter of chats that contain media but name no adapter
// (ServerOptions::default_adapters).
#pragma once

#include "api/engine.h"
#include "base/result.h"
#include "server/handlers/service.h"
#include "server/openai/requests.h"

namespace valora::server {

// Sets Target::default_adapter of a chat that names only the base model. A chat with two kinds of
// media whose default adapters differ gets neither, as in vLLM.
void set_default_adapter(const Service& service, GenerationBody& body);

// kInvalidArgument if a default adapter is not loaded.
Status check_default_adapters(const DefaultAdapters& defaults, const Engine& engine);

}  // namespace valora::server
