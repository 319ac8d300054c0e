// Builds the JSON of answers: chats, legacy completions, their stream chunks, usage and logprobs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/answer.h"
#include "server/openai/json_text.h"

namespace valora::server {

// Fields that every object of one answer repeats.
struct AnswerHead {
  std::string id;  // "chatcmpl-…"
  int64_t created = 0;
  std::string model;
};

// One finished choice.
struct Choice {
  std::string text;
  std::vector<TokenOutput> tokens;
  Finish finish;
};

struct AnswerOptions {
  bool logprobs = false;
  bool token_ids = false;
};

// The differences between the answers of the two generation endpoints.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;
  virtual const char* id_prefix() const = 0;
  virtual const char* object() const = 0;
  virtual const char* chunk_object() const = 0;
  virtual OrderedJson choice(int index, const Choice& choice, AnswerOptions options) const = 0;
  // `first`: this is the choice's first chunk. `text_offset`: characters in the choice's earlier
  // tokens.
  virtual OrderedJson chunk(int index, const OutputChunk& chunk, bool first, size_t text_offset,
                            AnswerOptions options) const = 0;
};

const AnswerFormat& chat_format();
const AnswerFormat& completion_format();

OrderedJson answer_head(const AnswerHead& head, const char* object);
OrderedJson usage_json(const Usage& usage);
OrderedJson stop_reason_json(const Finish& finish);

// {"content": [{"token", "logprob", "bytes", "top_logprobs"}]}
OrderedJson chat_logprobs(const std::vector<TokenOutput>& tokens);
// {"text_offset", "token_logprobs", "tokens", "top_logprobs"}. `text_offset`: characters before the
// first token.
OrderedJson completion_logprobs(const std::vector<TokenOutput>& tokens, size_t text_offset);
// Number of Unicode characters in the tokens' texts, as counted for text_offset.
size_t characters(const std::vector<TokenOutput>& tokens);

}  // namespace valora::server
