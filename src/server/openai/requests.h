// Parses the request bodies of the endpoints that run the model or its tokenizer: the OpenAI API
// with vLLM's extensions and ours. Errors: kInvalidArgument, or kNotImplemented for a field that
// this server does not have, with the field in `param`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/request.h"
#include "base/json.h"
#include "base/result.h"
#include "server/openai/messages.h"

namespace valora::server {

// The model, adapters and head that a body names.
struct Target {
  std::string model;             // as sent by the client; empty: the base model
  std::vector<AdapterUse> lora;  // the extension "lora": [{"name", "scale"}]
  bool from_lora_path = false;   // `lora` is SGLang's "lora_path"
  std::optional<std::string> head;
};

// How a request shares the engine with others.
struct Sharing {
  std::string cache_salt;
  std::optional<int> priority;
  // What may name its application: "metadata.application" as sent, null if absent, and "user",
  // empty if absent or not a string.
  Json application;
  std::string user;
};

struct GenerationBody {
  Target target;
  Sharing sharing;
  std::vector<Prompt> prompts;  // one for chat
  SamplingParams sampling;
  std::optional<AnswerConstraint> constraint;
  bool logprobs = false;  // include logprobs in the answer
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool return_token_ids = false;
};

struct ClassifyBody {
  Target target;
  Sharing sharing;
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
