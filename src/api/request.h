// What is asked of an engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"

namespace valora {

struct MediaRef {
  enum class Kind { kImage, kVideo };
  Kind kind = Kind::kImage;
  std::string url;  // data:, file:// or http(s)://; the fetch policy decides
};

using ContentPart = std::variant<std::string, MediaRef>;

struct ChatMessage {
  std::string role;
  std::vector<ContentPart> parts;
};

struct ChatPrompt {
  std::vector<ChatMessage> messages;
  // Opens the assistant's turn; absent: true when generating, as the head was trained when
  // classifying.
  std::optional<bool> add_generation_prompt;
  Json template_variables;  // chat_template_kwargs: an object, or null
};

// Plain text, token ids, or a conversation.
using Prompt = std::variant<std::string, std::vector<int32_t>, ChatPrompt>;

// Absent values take the model's generation_config.json, then the OpenAI default.
struct SamplingParams {
  std::optional<int> max_tokens;      // absent: up to the model's length
  int min_tokens = 0;                 // no end-of-sequence or stop token before
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
  std::optional<int>
      logprobs;  // top alternatives a token, 0 … 20; the chosen one comes in any case
};

struct AdapterUse {
  std::string name;
  float scale = 1;  // multiplies the adapter's own scale
};

enum class Task { kGenerate, kClassify };

struct GenerateRequest {
  std::string id;  // the client's or the server's, for logs
  Prompt prompt;
  std::vector<AdapterUse> adapters;  // empty: the base model; several are summed
  SamplingParams sampling;
  Task task = Task::kGenerate;
  // kClassify: which of the adapter's heads (absent: its only one). kGenerate: absent lets an
  // adapter that has heads answer with its label as the text; "" asks for the language-model head
  // all the same.
  std::optional<std::string> head;
};

// Names an accepted request as long as the engine lives.
using RequestHandle = uint64_t;

}  // namespace valora
