// The bodies of the endpoints that run the model, as the OpenAI API and its extensions spell them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/request.h"
#include "base/result.h"
#include "server/openai/messages.h"

namespace valora::server {

// Which model, adapters and head a body asks for.
struct Target {
  std::string model;             // as asked; empty: the base model
  std::vector<AdapterUse> lora;  // the extension "lora": [{"name", "scale"}]
  std::optional<std::string> head;
};

struct GenerationBody {
  Target target;
  std::vector<Prompt> prompts;  // one for chat
  SamplingParams sampling;
  bool logprobs = false;  // wanted in the answer
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool return_token_ids = false;
};

struct ClassifyBody {
  Target target;
  std::vector<Prompt> prompts;
  bool use_activation = true;
};

struct TokenizeBody {
  Target target;
  Prompt prompt;
  bool add_special_tokens = true;
};

struct DetokenizeBody {
  Target target;
  std::vector<int32_t> tokens;
};

Result<GenerationBody> parse_chat(std::string_view text, const MediaLimits& limits);
Result<GenerationBody> parse_completion(std::string_view text);
Result<ClassifyBody> parse_classify(std::string_view text, const MediaLimits& limits);
Result<TokenizeBody> parse_tokenize(std::string_view text, const MediaLimits& limits);
Result<DetokenizeBody> parse_detokenize(std::string_view text);

}  // namespace valora::server
