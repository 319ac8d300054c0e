// The log probabilities of a request's prompt tokens, collected while the prompt is computed.
// Independent of torch; used by the engine thread only, except that set() may run concurrently for
// different tokens.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/answer.h"
#include "serving/sampling/sampler.h"
#include "text/tokenizer.h"

namespace valora::serving {

class PromptLogprobs {
 public:
  // tokens: number of prompt tokens. top: alternatives per token.
  PromptLogprobs(size_t tokens, int top) : top_(top), scores_(tokens) {}

  // kInvalidArgument if this is more than an answer may hold.
  static Status check(size_t tokens, int top);

  // True if the token at this position still needs a score, which comes from the logits of the
  // position before.
  bool wants(int position) const {
    return position > 0 && position < static_cast<int>(scores_.size()) && !scores_[position];
  }
  void set(int position, int32_t token, std::span<const float> logits) {
    scores_[position] = score_token(logits, token, top_);
  }
  // The tokens in the answer's format, built once. An error if one was not scored.
  Result<std::shared_ptr<const std::vector<TokenOutput>>> outputs(
      const std::vector<int32_t>& prompt, const text::Tokenizer& tokenizer);

 private:
  const int top_;
  std::vector<std::optional<Result<ScoredToken>>> scores_;  // by position
  std::shared_ptr<const std::vector<TokenOutput>> outputs_;
};

// The salt of a request whose prompt must be computed afresh: unique to the request.
std::string salt_of_one(const std::string& cache_salt, uint64_t request);

}  // namespace valora::serving
