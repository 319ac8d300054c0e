#include "serving/sampling/thought_progress.h"

#include <utility>

namespace valora::serving {

ThoughtProgress::ThoughtProgress(const ThoughtSyntax& syntax,
                                 std::shared_ptr<const text::Tokenizer> tokenizer, Options options)
    : syntax_(syntax),
      tokenizer_(std::move(tokenizer)),
      options_(options),
      splitter_(*syntax.marks, options.start) {}

std::optional<int32_t> ThoughtProgress::forced() const {
  if (!open() || !options_.budget || tokens_ < *options_.budget || syntax_.end_tokens.empty())
    return std::nullopt;
  return syntax_.end_tokens[closing_ % syntax_.end_tokens.size()];
}

void ThoughtProgress::accept(int32_t token) {
  if (!undecided() && !open()) return;
  const bool was_forced = forced().has_value(), was_open = open();
  if (!is_left_out(token, &syntax_, *tokenizer_, options_.skip_special_tokens))
    splitter_.feed(tokenizer_->token_bytes(token));
  if (was_forced) ++closing_;
  if (was_open && open() && !was_forced) ++tokens_;
}

void ThoughtProgress::begin_answer() {
  splitter_ = ThoughtSplitter(*syntax_.marks, text::ThoughtPlace::kAnswer);
}

}  // namespace valora::serving
