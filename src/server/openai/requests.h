// Parses the request bodies of the endpoints that run the model or its tokenizer: the OpenAI API
// with vLLM's extensions and ours. Errors: kInvalidArgument, or kNotImplemented for an unsupported
// field, with the field in `param`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/request.h"
#include "base/json/json.h"
#include "base/result.h"
#include "server/openai/content_items.h"
#include "server/openai/messages.h"
#include "server/openai/retrieval_prompts.h"
#include "server/openai/tools.h"

namespace valora::server {

// Parses the fields of a chat that concern the thought before its answer: "enable_thinking",
// "reasoning_effort", "thinking_token_budget", "include_reasoning" and "separate_reasoning".
struct Thinking {
  ThoughtParams params;
  bool shown = true;  // the answer has the thought
};

// The prompt must already have its template variables.
Result<Thinking> parse_thinking(const Json& body, ChatPrompt& prompt);

// The model, adapters and head that a body names.
struct Target {
  std::string model;             // as sent by the client; empty: the base model
  std::vector<AdapterUse> lora;  // the extension "lora": [{"name", "scale"}]
  bool from_lora_path = false;   // `lora` comes from SGLang's "lora_path"
  std::optional<std::string> head;
  // The default adapter that answers a chat with media that names no adapter
  // (ServerOptions::default_adapters); empty: none.
  std::string default_adapter = {};
};

// How a request shares the engine with others.
struct Sharing {
  std::string cache_salt;
  std::optional<int> priority;
  // The fields that may name the application: "metadata.application" as sent (null if absent), and
  // "user" (empty if absent or not a string).
  Json application;
  std::string user;
};

struct GenerationBody {
  Target target;
  Sharing sharing;
  std::vector<Prompt> prompts;  // one for chat
  SamplingParams sampling;
  std::optional<AnswerConstraint> constraint;
  std::optional<JsonSpacing> json_whitespace;  // nullopt: the server's default
  ToolRequest tools;                           // chats only
  Thinking thinking;                           // chats only
  bool logprobs = false;                       // answer with log probabilities
  bool prompt_logprobs = false;                // answer with the prompt's log probabilities
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool return_token_ids = false;
  bool token_ids_as_text = false;  // write tokens in log probabilities as "token_id:ID"
  bool echo = false;               // completions only: the text begins with the prompt
  std::optional<int> truncate_prompt_tokens;
};

struct ClassifyBody {
  Target target;
  Sharing sharing;
  std::vector<Prompt> prompts;
  std::optional<int> truncate_prompt_tokens;
  bool use_activation = true;
};

struct EmbedBody {
  Target target;
  Sharing sharing;
  std::optional<ChatPrompt> conversation;  // "messages"; absent: the items of "input"
  std::vector<ContentItem> items;
  ItemFields fields;
  std::optional<int> truncate_prompt_tokens;
  bool base64 = false;  // send little-endian floats as base64 instead of numbers
  bool normalize = true;
  std::optional<int64_t> dimensions;  // numbers of an embedding
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

Result<Target> parse_target(const Json& body);
Result<Sharing> parse_sharing(const Json& body);
// "truncate_prompt_tokens".
Result<std::optional<int>> parse_truncation(const Json& body);

Result<GenerationBody> parse_chat(std::string_view text, const RequestLimits& limits);
// The same for a body that is already parsed; `text` contains the fields for which key order
// matters. conversation: used instead of the body's messages and their settings.
Result<GenerationBody> parse_chat_body(Json body, std::string_view text,
                                       const RequestLimits& limits,
                                       std::optional<ChatPrompt> conversation = {});
Result<GenerationBody> parse_completion(std::string_view text, const RequestLimits& limits = {});
Result<ClassifyBody> parse_classify(std::string_view text, const RequestLimits& limits);
Result<EmbedBody> parse_embed(std::string_view text, const RequestLimits& limits);
Result<TokenizeBody> parse_tokenize(std::string_view text, const RequestLimits& limits);
Result<DetokenizeBody> parse_detokenize(std::string_view text);

}  // namespace valora::server
