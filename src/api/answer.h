// What an engine answers, and the sink that it answers to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

namespace valora {

struct TokenLogprob {
  int32_t id = 0;
  std::string bytes;  // of the token, perhaps part of a character
  float logprob = 0;
};

struct TokenOutput {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // only when asked
};

struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;
  int cached_tokens = 0;  // prompt tokens whose KV was found in the prefix cache
};

enum class FinishReason { kStop, kLength, kAbort };
const char* finish_reason_name(FinishReason reason);  // "stop", "length", "abort"

struct Finish {
  FinishReason reason = FinishReason::kStop;
  std::variant<std::monostate, int32_t, std::string>
      stop_reason;  // the stop token id or string that ended it
};

// New text of one of the n sequences. Text may lag behind tokens (half characters, possible stop
// strings).
struct OutputChunk {
  int index = 0;
  std::string text;
  std::vector<TokenOutput> tokens;
  std::optional<Finish> finish;  // set on the sequence's last chunk
};

struct Classification {
  std::string head;
  std::vector<std::string> labels;
  std::vector<float> logits;
  std::vector<float> probs;  // softmax, sigmoid or the raw values, by the head's problem type
  int best = 0;              // index of the label answered
};

struct RequestTimings {
  double queue_seconds = 0;    // arrival to first scheduled, media work included
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

// Where one request's answer goes. Exactly one of on_done and on_error ends it; nothing follows.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  // The request was scheduled for the first time: prompt and cached tokens are known.
  virtual void on_start(const Usage&) {}
  virtual void on_output(OutputChunk chunk) = 0;
  virtual void on_classification(Classification) {}
  virtual void on_done(const FinalInfo& info) = 0;
  virtual void on_error(const Error& error) = 0;
};

}  // namespace valora
