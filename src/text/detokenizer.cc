#include "text/detokenizer.h"

namespace valora::text {

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens)
    : tokenizer_(std::move(tokenizer)),
      skip_special_tokens_(skip_special_tokens),
      stream_(tokenizer_->decoder()) {}

std::string Detokenizer::push(int32_t id) {
  if (skip_special_tokens_ && tokenizer_->is_special(id)) return {};
  const std::string* token = tokenizer_->token_text(id);
  return token ? stream_.push(*token) : std::string();
}

std::string Detokenizer::flush() { return stream_.finish(); }

}  // namespace valora::text
