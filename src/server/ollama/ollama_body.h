// Translates the bodies of Ollama's API to those of the OpenAI API. Errors name Ollama's fields.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "server/openai/messages.h"
#include "server/openai/requests.h"

namespace valora::server::ollama {

struct OllamaBody {
  GenerationBody body;
  bool stream = true;  // Ollama's default
  // The request only asks for the model to be loaded, which it is.
  bool loads = false;
};

// "digits:latest" is "digits", as Ollama has it.
std::string without_latest(std::string name);

// /api/chat.
Result<OllamaBody> parse_ollama_chat(std::string_view text, const RequestLimits& limits);
// /api/generate: a message of the user after the system's; with "raw", a text without template.
Result<OllamaBody> parse_ollama_generate(std::string_view text, const RequestLimits& limits);
// /api/embed, and the older /api/embeddings with "prompt". The body of /v1/embeddings.
Result<std::string> embed_body_of_ollama(std::string_view text);

}  // namespace valora::server::ollama
