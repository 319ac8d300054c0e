// A request to an engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/constraint.h"
#include "api/media_settings.h"
#include "base/json.h"
#include "base/json_spacing.h"

namespace valora {

struct MediaRef {
  enum class Kind { kImage, kVideo };
  Kind kind = Kind::kImage;
  std::string url;  // data:, file:// or http(s)://, subject to MediaAccess
  MediaSettings settings = {};
};

using ContentPart = std::variant<std::string, MediaRef>;

// A call that the assistant made in an earlier turn.
struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // a JSON object
};

struct ChatMessage {
  std::string role;
  std::vector<ContentPart> parts;
  std::vector<ToolCall> tool_calls = {};  // of the assistant
  std::string tool_call_id = {};          // role "tool": the call that this is the result of
  std::string name = {};                  // as sent; may be empty
};

struct ChatPrompt {
  std::vector<ChatMessage> messages;
  // Opens the assistant's turn. Absent: true for generation; for classification, the value that the
  // head was trained with.
  std::optional<bool> add_generation_prompt;
  // The last message is the beginning of the answer: the prompt ends with its text.
  bool continue_final_message = false;
  Json template_variables;  // "chat_template_kwargs": an object or null
  // A JSON list of the tools that the model may call, in OpenAI's form; empty: none.
  std::string tools = {};
  std::string chat_template = {};  // Jinja, instead of the model's; empty: none
  // The spellings of special tokens in the messages, tools and template variables are plain text.
  bool plain_texts = false;
  MediaSettings media_settings = {};  // of media without settings of their own
};

// Plain text, token ids, or a conversation.
using Prompt = std::variant<std::string, std::vector<int32_t>, ChatPrompt>;

// Absent values take the model's generation_config.json, then the OpenAI default.
struct SamplingParams {
  // Absent: up to max_model_len. 0: the prompt is computed, and nothing is generated.
  std::optional<int> max_tokens;
  int min_tokens = 0;                 // end-of-sequence and stop tokens are suppressed before
  std::optional<double> temperature;  // 0: greedy
  std::optional<double> top_p;
  std::optional<int> top_k;  // 0 or -1: off
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::vector<std::pair<int32_t, float>> logit_bias;
  std::vector<int32_t> allowed_token_ids;  // no other token is chosen; empty: all are allowed
  std::vector<std::string> bad_words;      // texts whose tokens are never generated
  std::optional<int64_t> seed;
  int n = 1;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool include_stop_str_in_output = false;
  bool ignore_eos = false;
  bool skip_special_tokens = true;
  // alternatives per token, up to EngineOptions::max_logprobs; the chosen token is always included
  std::optional<int> logprobs;
  // The same for the prompt's tokens; bypasses the prefix cache (OutputChunk::prompt).
  std::optional<int> prompt_logprobs = {};
};

struct AdapterUse {
  std::string name;
  float scale = 1;  // factor on the adapter's own scale
};

// kTokenize: the answer is FinalInfo::prompt_token_ids alone. kEmbed: the state of the last prompt
// token after the final norm.
enum class Task { kGenerate, kClassify, kTokenize, kEmbed };

struct GenerateRequest {
  std::string id;      // for logs
  std::string client;  // who sends it: the media of clients are prepared in turns; may be empty
  Prompt prompt;
  std::vector<AdapterUse> adapters;  // empty: the base model; the effects of several are summed
  SamplingParams sampling;
  // Applies to every choice. Log probabilities then cover the allowed tokens only.
  std::optional<AnswerConstraint> constraint;
  std::optional<JsonSpacing> json_whitespace;  // absent: EngineOptions::json_whitespace
  Task task = Task::kGenerate;
  // Keeps only this many tokens at the prompt's end; -1: as many as the model takes. The prompt
  // must have no media.
  std::optional<int> truncate_prompt_tokens;
  // kClassify: the adapter's head; absent: its only one. kGenerate: a head answers with its label
  // as the text, "" or "lm" selects the language model; absent: the adapter's default
  // (LoadAdapter::head), else its only head.
  std::optional<std::string> head;
  // Requests with different salts never share cached prefixes; empty: no salt.
  std::string cache_salt;
  int priority = 0;  // lower runs first
  // Whose request it is. Of the tenants whose requests wait, each is served in proportion to its
  // share, a weight above 0; the priority comes first. "": nobody's in particular.
  std::string tenant;
  double share = 1;
  // Latency targets in seconds: of the first token, from the arrival, and of each further token.
  // Absent: none.
  std::optional<double> ttft_target, tpot_target;
};

// Identifies an accepted request. Never reused by the same engine.
using RequestHandle = uint64_t;

}  // namespace valora
