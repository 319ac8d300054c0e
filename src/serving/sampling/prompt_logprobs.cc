#include "serving/sampling/prompt_logprobs.h"

#include <fmt/format.h>

#include <utility>

namespace valora::serving {
namespace {

// Each takes about 150 bytes here and in JSON.
constexpr size_t kMaxEntries = size_t{1} << 18;

}  // namespace

Status PromptLogprobs::check(size_t tokens, int top) {
  const size_t entries = tokens * static_cast<size_t>(top + 1);
  if (entries <= kMaxEntries) return {};
  return invalid(fmt::format("log probabilities of {} prompt tokens with {} alternatives each are "
                             "{} values; at most {} are allowed",
                             tokens, top, entries, kMaxEntries),
                 "prompt_logprobs");
}

Result<std::shared_ptr<const std::vector<TokenOutput>>> PromptLogprobs::outputs(
    const std::vector<int32_t>& prompt, const text::Tokenizer& tokenizer) {
  if (outputs_) return outputs_;
  std::vector<TokenOutput> outputs;
  outputs.reserve(prompt.size());
  const auto describe = [&](const RankedToken& token, int rank) {
    return TokenLogprob{token.id, tokenizer.token_bytes(token.id), token.logprob, rank};
  };
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (i == 0) {
      outputs.push_back({describe({prompt[i], 0}, 0), {}});
      continue;
    }
    if (!scores_[i]) return internal("a token of the prompt has no log probability");
    if (!scores_[i]->ok()) return scores_[i]->error();
    const ScoredToken& scored = **scores_[i];
    TokenOutput output{describe(scored.token, scored.rank), {}};
    for (const RankedToken& other : scored.top)
      output.top.push_back(describe(other, static_cast<int>(output.top.size()) + 1));
    outputs.push_back(std::move(output));
  }
  scores_ = {};
  outputs_ = std::make_shared<const std::vector<TokenOutput>>(std::move(outputs));
  return outputs_;
}

std::string salt_of_one(const std::string& cache_salt, uint64_t request) {
  return fmt::format("{}\nrequest {}", cache_salt, request);
}

}  // namespace valora::serving
