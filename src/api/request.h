// A request to an engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/constraint.h"
#include "base/json.h"

namespace valora {

struct MediaRef {
  enum class Kind { kImage, kVideo };
  Kind kind = Kind::kImage;
  std::string url;  // data:, file:// or http(s)://, subject to MediaAccess
};

using ContentPart = std::variant<std::string, MediaRef>;

struct ChatMessage {
  std::string role;
  std::vector<ContentPart> parts;
};

struct ChatPrompt {
  std::vector<ChatMessage> messages;
  // Whether to open the assistant's turn. Absent: true for generation; for classification, the
  // value that the head was trained with.
  std::optional<bool> add_generation_prompt;
  Json template_variables;  // "chat_template_kwargs": an object or null
};

// Plain text, token ids, or a conversation.
using Prompt = std::variant<std::string, std::vector<int32_t>, ChatPrompt>;

// Absent values take the model's generation_config.json, then the OpenAI default.
struct SamplingParams {
  std::optional<int> max_tokens;      // absent: up to max_model_len
  int min_tokens = 0;                 // end-of-sequence and stop tokens are suppressed before
  std::optional<double> temperature;  // 0: greedy
  std::optional<double> top_p;
  std::optional<int> top_k;  // 0 or -1: off
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::vector<std::pair<int32_t, float>> logit_bias;
  std::optional<int64_t> seed;
  int n = 1;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool include_stop_str_in_output = false;
  bool ignore_eos = false;
  bool skip_special_tokens = true;
  // alternatives per token, 0 to 20; the chosen token is always included
  std::optional<int> logprobs;
};

struct AdapterUse {
  std::string name;
  float scale = 1;  // factor on the adapter's own scale
};

// kTokenize: the answer is FinalInfo::prompt_token_ids alone.
enum class Task { kGenerate, kClassify, kTokenize };

struct GenerateRequest {
  std::string id;      // for logs
  std::string client;  // who sends it: the media of clients are prepared in turns; may be empty
  Prompt prompt;
  std::vector<AdapterUse> adapters;  // empty: the base model; the effects of several are summed
  SamplingParams sampling;
  // Of every choice. Log probabilities are then those among the allowed tokens.
  std::optional<AnswerConstraint> constraint;
  Task task = Task::kGenerate;
  // kClassify: the adapter's head; absent: its only one. kGenerate: a head answers with its label
  // as the text, "" selects the language model; absent: the adapter's default (LoadAdapter::head).
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
