// The log probabilities of a request's prompt tokens, gathered while the prompt is computed.
// Torch-free; only the engine thread uses it, but for different tokens set() may run at once.
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
  // tokens: of the prompt. top: alternatives of each.
  PromptLogprobs(size_t tokens, int top) : top_(top), scores_(tokens) {}

  // kInvalidArgument if so many would be more than an answer can hold.
  static Status check(size_t tokens, int top);

  // Whether the token at this position still has to be scored, under the logits of the one before.
  bool wants(int position) const {
    return position > 0 && position < static_cast<int>(scores_.size()) && !scores_[position];
  }
  void set(int position, int32_t token, std::span<const float> logits) {
    scores_[position] = score_token(logits, token, top_);
  }
  // The tokens in the form of the answer, made once. An error if one was not scored.
  Result<std::shared_ptr<const std::vector<TokenOutput>>> outputs(
      const std::vector<int32_t>& prompt, const text::Tokenizer& tokenizer);

 private:
  const int top_;
  std::vector<std::optional<Result<ScoredToken>>> scores_;  // by position
  std::shared_ptr<const std::vector<TokenOutput>> outputs_;
};

// The salt of a request whose prompt must be computed anew: no other request has it.
std::string salt_of_one(const std::string& cache_salt, uint64_t request);

}  // namespace valora::serving
