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

// Fields repeated in every object of one answer.
struct AnswerHead {
  std::string id;  // "chatcmpl-…"
  int64_t created = 0;
  std::string model;
};

// A tool call in an answer.
struct AnswerCall {
  std::string id, name, arguments;
};

// One finished choice.
struct Choice {
  std::string text;
  std::string thought = {};
  std::vector<TokenOutput> tokens;
  std::shared_ptr<const std::vector<TokenOutput>> prompt = {};  // OutputChunk::prompt
  Finish finish;
};

struct AnswerOptions {
  bool logprobs = false;
  bool token_ids = false;
  bool prompt_logprobs = false;
  bool echo = false;  // a completion's log probabilities begin with those of the prompt
};

// The differences between the answers of chats and completions.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;
  virtual const char* id_prefix() const = 0;
  virtual const char* object() const = 0;
  virtual const char* chunk_object() const = 0;
  virtual bool prompt_in_choices() const = 0;  // each choice repeats its prompt's fields
  virtual OrderedJson choice(int index, const Choice& choice, AnswerOptions options) const = 0;
  // `first`: this is the choice's first chunk. `text_offset`: characters in the choice's earlier
  // tokens.
  virtual OrderedJson chunk(int index, const OutputChunk& chunk, bool first, size_t text_offset,
                            AnswerOptions options) const = 0;
};

const AnswerFormat& chat_format();
const AnswerFormat& completion_format();

// Adds the calls to a finished chat choice. Empty text becomes null, and a finish reason of "stop"
// becomes "tool_calls".
void set_tool_calls(OrderedJson& choice, const std::vector<AnswerCall>& calls);

// An increment of a call in a stream; only the first one has id and name.
struct AnswerCallDelta {
  int index = 0;
  std::string id;
  std::optional<std::string> name;
  std::string arguments;
};
// The same for a chunk. called: this or an earlier chunk of the choice contains calls.
void add_tool_calls(OrderedJson& chunk, const std::vector<AnswerCallDelta>& calls, bool called);

OrderedJson answer_head(const AnswerHead& head, const char* object);
OrderedJson usage_json(const Usage& usage);
OrderedJson stop_reason_json(const Finish& finish);

// The label chosen by a task head, as an answer's token. Labels have the id -1, which no token has.
// top: how many labels to list, likeliest first.
TokenOutput label_token(const Classification& classification, int top);
// {"content": [{"token", "logprob", "bytes", "top_logprobs"}]}
OrderedJson chat_logprobs(const std::vector<TokenOutput>& tokens);
// {"text_offset", "token_logprobs", "tokens", "top_logprobs"}. `text_offset`: characters before the
// first token. prompt: tokens to list first, the very first without a log probability; may be null.
OrderedJson completion_logprobs(const std::vector<TokenOutput>* prompt,
                                const std::vector<TokenOutput>& tokens, size_t text_offset);
// vLLM's format: null, then {"ID": {"logprob", "rank", "decoded_token"}} for each further token.
OrderedJson prompt_logprobs(const std::vector<TokenOutput>& tokens);
// Number of Unicode characters in the tokens' texts, as counted for text_offset.
size_t characters(const std::vector<TokenOutput>& tokens);

}  // namespace valora::server
