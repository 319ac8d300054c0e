// Builds the JSON of answers: chats, legacy completions, their stream chunks, usage and logprobs.
#pragma once

#include <cstdint>
#include <memory>
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

// A call of a tool in an answer.
struct AnswerCall {
  std::string id, name, arguments;
};

// One finished choice.
struct Choice {
  std::string text;
  std::vector<TokenOutput> tokens;
  std::shared_ptr<const std::vector<TokenOutput>> prompt = {};  // OutputChunk::prompt
  Finish finish;
};

struct AnswerOptions {
  bool logprobs = false;
  bool token_ids = false;
  bool prompt_logprobs = false;
  bool echo = false;  // the log probabilities of a completion begin with those of the prompt
};

// The differences between the answers of the two generation endpoints.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;
  virtual const char* id_prefix() const = 0;
  virtual const char* object() const = 0;
  virtual const char* chunk_object() const = 0;
  virtual bool prompt_in_choices() const = 0;  // each choice contains its prompt's fields
  virtual OrderedJson choice(int index, const Choice& choice, AnswerOptions options) const = 0;
  // `first`: this is the choice's first chunk. `text_offset`: characters in the choice's earlier
  // tokens.
  virtual OrderedJson chunk(int index, const OutputChunk& chunk, bool first, size_t text_offset,
                            AnswerOptions options) const = 0;
};

const AnswerFormat& chat_format();
const AnswerFormat& completion_format();

// Writes the calls into the JSON of a finished choice of a chat, which then has no text if that is
// empty, and "tool_calls" as its reason to finish if it was "stop".
void set_tool_calls(OrderedJson& choice, const std::vector<AnswerCall>& calls);

// A part of a call in a stream; id and name are in its first part.
struct AnswerCallDelta {
  int index = 0;
  std::string id;
  std::optional<std::string> name;
  std::string arguments;
};
// The same for a chunk. called: whether the choice has calls, in this chunk or earlier ones.
void add_tool_calls(OrderedJson& chunk, const std::vector<AnswerCallDelta>& calls, bool called);

OrderedJson answer_head(const AnswerHead& head, const char* object);
OrderedJson usage_json(const Usage& usage);
OrderedJson stop_reason_json(const Finish& finish);

// The label that a task head answered with, as the token of an answer. Labels have the id -1, which
// is no token's. top: how many labels to list, the likeliest first.
TokenOutput label_token(const Classification& classification, int top);
// {"content": [{"token", "logprob", "bytes", "top_logprobs"}]}
OrderedJson chat_logprobs(const std::vector<TokenOutput>& tokens);
// {"text_offset", "token_logprobs", "tokens", "top_logprobs"}. `text_offset`: characters before the
// first token. prompt: its tokens come first, the first one without a log probability; may be null.
OrderedJson completion_logprobs(const std::vector<TokenOutput>* prompt,
                                const std::vector<TokenOutput>& tokens, size_t text_offset);
// vLLM's form: null, then {"ID": {"logprob", "rank", "decoded_token"}} for each further token.
OrderedJson prompt_logprobs(const std::vector<TokenOutput>& tokens);
// Number of Unicode characters in the tokens' texts, as counted for text_offset.
size_t characters(const std::vector<TokenOutput>& tokens);

}  // namespace valora::server
