// The engine's answer to one request, and the sink that receives it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/labels.h"
#include "base/result.h"

namespace valora {

struct TokenLogprob {
  int32_t id = 0;
  std::string bytes;  // the token's bytes; may be an incomplete UTF-8 character
  float logprob = 0;
  int rank = 0;  // rank of a prompt token, 1 for the most likely; otherwise 0
};

struct TokenOutput {
  TokenLogprob chosen;
  // the most likely tokens; empty unless SamplingParams::logprobs is set
  std::vector<TokenLogprob> top;
};

struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;
  int cached_tokens = 0;  // prompt tokens found in the prefix cache
  // Of the completion tokens, those of thoughts that are given apart (ThoughtParams), without the
  // tokens that open and close them.
  int thought_tokens = 0;
};

enum class FinishReason { kStop, kLength, kAbort };
const char* finish_reason_name(FinishReason reason);  // "stop", "length", "abort"

struct Finish {
  FinishReason reason = FinishReason::kStop;
  // the stop token id or stop string that ended the sequence
  std::variant<std::monostate, int32_t, std::string> stop_reason;
};

// New tokens and text of one of the n sequences. The text may lag behind the tokens: incomplete
// characters and possible stop strings are held back.
struct OutputChunk {
  int index = 0;
  std::string text;
  std::vector<TokenOutput> tokens;
  std::optional<Finish> finish;  // set on the sequence's last chunk
  // Set on the sequence's first chunk if SamplingParams::prompt_logprobs is set: the prompt's
  // tokens. The first one has no log probability.
  std::shared_ptr<const std::vector<TokenOutput>> prompt = {};
  std::string thought = {};  // with ThoughtParams::apart; comes before all text
  int thought_tokens = 0;    // how many of `tokens` belong to it
};

struct Classification {
  std::string head;
  Labels labels;
  std::vector<float> logits;
  // softmax, sigmoid or the raw values, depending on the head's problem type
  std::vector<float> probs;
  int best = 0;  // index of the label answered
};

struct RequestTimings {
  double queue_seconds = 0;    // arrival to first scheduled, including media decoding
  double adapter_seconds = 0;  // part of it spent bringing an adapter into the pool
  double kv_seconds = 0;       // part of it spent reading KV from the swap space
  double prefill_seconds = 0;  // first scheduled to first token
  double decode_seconds = 0;   // first to last token
  double ttft_seconds = 0;     // arrival to first token
  double e2e_seconds = 0;
};

struct FinalInfo {
  Usage usage;
  RequestTimings timings;
  int preemptions = 0;
  std::vector<int32_t> prompt_token_ids;
};

// A prompt's tokens with media expanded; shared with the engine.
using PromptTokens = std::shared_ptr<const std::vector<int32_t>>;

// Receives the answer to one request. Called on engine threads; must neither block nor throw. The
// last call is either on_done or on_error.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  // The request was scheduled for the first time: prompt and cached tokens are known. Keeping the
  // tokens also keeps the prepared media alive.
  virtual void on_start(const Usage&, const PromptTokens&) {}
  virtual void on_output(OutputChunk chunk) = 0;
  virtual void on_classification(Classification) {}
  virtual void on_embedding(std::vector<float>) {}  // NOLINT(performance-*): sinks keep it
  virtual void on_done(const FinalInfo& info) = 0;
  virtual void on_error(const Error& error) = 0;
};

}  // namespace valora
