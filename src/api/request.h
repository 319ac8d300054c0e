// A request to the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/constraint.h"
#include "api/media_settings.h"
#include "base/json/json.h"
#include "base/json/json_spacing.h"

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
  std::vector<ToolCall> tool_calls = {};    // the assistant's calls
  std::string tool_call_id = {};            // role "tool": id of the call that this result answers
  std::string name = {};                    // as sent; may be empty
  std::optional<std::string> thought = {};  // the assistant's, before its answer ("reasoning")
};

struct ChatPrompt {
  std::vector<ChatMessage> messages;
  // Open the assistant's turn. Absent: true for generation; for classification, the value that the
  // head was trained with.
  std::optional<bool> add_generation_prompt;
  // Add the tokens that the tokenizer puts around a text, which templates usually write themselves.
  bool add_special_tokens = false;
  // The last message is the beginning of the answer, so the prompt ends with its text.
  bool continue_final_message = false;
  Json template_variables;  // "chat_template_kwargs": an object or null
  // Variables that a format without a template leaves out if it does not know them; an object or
  // null. template_variables take precedence.
  Json template_hints = {};
  // A JSON list of the tools that the model may call, in OpenAI's form; empty: none.
  std::string tools = {};
  std::string chat_template = {};  // Jinja, instead of the model's; empty: none
  // Treat the spellings of special tokens in messages, tools and template variables as plain text.
  bool plain_texts = false;
  MediaSettings media_settings = {};                       // settings for media without their own
  MediaSettings image_settings = {}, video_settings = {};  // the same for one kind, which go first
};

// Plain text, token ids, or a conversation.
using Prompt = std::variant<std::string, std::vector<int32_t>, ChatPrompt>;

// Absent values come from the model's generation_config.json, then from OpenAI's defaults.
struct SamplingParams {
  // Absent: up to max_model_len. 0: computes the prompt and generates nothing.
  std::optional<int> max_tokens;
  int min_tokens = 0;                 // end-of-sequence and stop tokens are suppressed until then
  std::optional<double> temperature;  // 0: greedy
  std::optional<double> top_p;
  std::optional<int> top_k;  // 0 or -1: off
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::vector<std::pair<int32_t, float>> logit_bias;
  std::vector<int32_t> allowed_token_ids;  // only these may be chosen; empty: all
  std::vector<std::string> bad_words;      // texts whose token sequences are never generated
  std::optional<int64_t> seed;
  int n = 1;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool include_stop_str_in_output = false;
  bool ignore_eos = false;
  bool skip_special_tokens = true;
  // alternatives per token, up to EngineOptions::max_logprobs; the chosen token is always included
  std::optional<int> logprobs;
  std::vector<int32_t> logprob_token_ids = {};  // these are the alternatives, in this order
  // The same for the prompt's tokens; bypasses the prefix cache (OutputChunk::prompt).
  std::optional<int> prompt_logprobs = {};
};

struct AdapterUse {
  std::string name;
  float scale = 1;  // factor on the adapter's own scale
};

// kTokenize: returns only FinalInfo::prompt_token_ids. kEmbed: the hidden state after the final
// norm, of the last prompt token or as the mean over the prompt (ModelCard::retrieval).
enum class Task { kGenerate, kClassify, kTokenize, kEmbed };

// Requests that a client sent as one, such as the prompts of a completion. Limits for a request
// hold for all of them together.
struct RequestGroup {
  std::mutex mutex;
  std::shared_ptr<void> masks;  // set and used by the engine
};

// The thought with which a model may begin its answer to a conversation.
struct ThoughtParams {
  // OutputChunk::thought has its text; stop strings and stop tokens apply to the rest. Otherwise it
  // is part of the text.
  bool apart = false;
  std::optional<int> budget = {};  // tokens after which it is closed
};

struct GenerateRequest {
  std::string id;      // for logs
  std::string client;  // the sender; clients take turns in media preparation; may be empty
  Prompt prompt;
  std::vector<AdapterUse> adapters;  // empty: the base model; with several, their effects add up
  SamplingParams sampling;
  // Applies to every choice, after its thought. Log probabilities then cover only the allowed
  // tokens.
  std::optional<AnswerConstraint> constraint;
  ThoughtParams thought = {};
  std::optional<JsonSpacing> json_whitespace;  // absent: EngineOptions::json_whitespace
  Task task = Task::kGenerate;
  // Keep only this many tokens at the end of the prompt; -1: as many as the model allows. The
  // prompt must not contain media.
  std::optional<int> truncate_prompt_tokens;
  // kClassify: the adapter's head; absent: its only head. kGenerate: a head answers with its label
  // as text, and "" or "lm" selects the language model; absent: the adapter's default
  // (LoadAdapter::head), else its only head.
  std::optional<std::string> head;
  // Requests with different salts never share cached prefixes; empty: no salt.
  std::string cache_salt;
  int priority = 0;  // lower runs first
  // Tenant to which the request belongs. Tenants with waiting requests are served in proportion to
  // their share, a weight above 0; priority takes precedence. "": no particular tenant.
  std::string tenant;
  double share = 1;
  std::shared_ptr<RequestGroup> group = {};  // null: alone
  // Latency targets in seconds: from arrival to the first token, and per further token. Absent:
  // none.
  std::optional<double> ttft_target, tpot_target;
};

// Identifies an accepted request. Never reused by the same engine.
using RequestHandle = uint64_t;

}  // namespace valora
