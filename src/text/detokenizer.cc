#include "text/detokenizer.h"

#include "text/unicode.h"

namespace valora::text {

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens)
    : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens) {}

std::string Detokenizer::push(int32_t id) {
  if (skip_special_tokens_ && tokenizer_->is_special(id)) return {};
  pending_ += tokenizer_->token_bytes(id);
  std::string out;
  size_t done = 0;
  while (done < pending_.size()) {
    const std::string_view rest = std::string_view(pending_).substr(done);
    const Utf8Step step = decode_utf8(rest);
    if (step.status == Utf8Status::kIncomplete) break;
    out += step.status == Utf8Status::kValid ? rest.substr(0, step.length) : kReplacement;
    done += step.length;
  }
  pending_.erase(0, done);
  return out;
}

std::string Detokenizer::flush() {
  const bool incomplete = !pending_.empty();
  pending_.clear();
  return std::string(incomplete ? kReplacement : "");
}

}  // namespace valora::text
