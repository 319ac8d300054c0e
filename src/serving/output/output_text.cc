#include "serving/output/output_text.h"

#include <algorithm>
#include <utility>

namespace valora::serving {
namespace {

struct Found {
  size_t at = std::string::npos;
  const std::string* stop = nullptr;
};

// The first stop string that ends beyond the first `known` bytes of the text.
Found first_stop(const std::string& text, size_t known, const std::vector<std::string>& stops) {
  Found found;
  for (const std::string& stop : stops)
    if (const size_t at = text.find(stop, known < stop.size() ? 0 : known + 1 - stop.size());
        at < found.at)
      found = {at, &stop};
  return found;
}

// Length of the longest suffix of `text` that is a proper prefix of a stop string.
size_t possible_start(const std::string& text, const std::vector<std::string>& stops) {
  size_t longest = 0;
  for (const std::string& stop : stops)
    for (size_t n = std::min(stop.size() - 1, text.size()); n > longest; --n)
      if (text.compare(text.size() - n, n, stop, 0, n) == 0) longest = n;
  return longest;
}

}  // namespace

StopStrings make_stop_strings(std::vector<std::string> stop) {
  std::erase_if(stop, [](const std::string& s) { return s.empty(); });
  return std::make_shared<const std::vector<std::string>>(std::move(stop));
}

OutputText::OutputText(std::shared_ptr<const text::Tokenizer> tokenizer, bool skip_special_tokens,
                       StopStrings stop, bool include_stop, std::optional<ThoughtsApart> thoughts)
    : tokenizer_(std::move(tokenizer)),
      skip_special_tokens_(skip_special_tokens),
      detokenizer_(tokenizer_, /*skip_special_tokens=*/false),
      stop_(std::move(stop)),
      include_stop_(include_stop) {
  if (!thoughts) return;
  syntax_ = thoughts->syntax;
  splitter_.emplace(*syntax_->marks, thoughts->start);
}

// The character's own text is discarded.
void OutputText::begin_inside_a_text() {
  for (char c = 'a'; c <= 'z'; ++c)
    if (const auto id = tokenizer_->token_to_id(std::string(1, c))) {
      (void)detokenizer_.push(*id);
      return;
    }
}

bool OutputText::in_thought() const {
  return splitter_ && splitter_->place() == text::ThoughtPlace::kThought;
}

// Marks are read even if they are special tokens.
std::string OutputText::text_of(int32_t token) {
  return is_left_out(token, syntax_, *tokenizer_, skip_special_tokens_) ? std::string()
                                                                        : detokenizer_.push(token);
}

OutputText::Piece OutputText::release(std::string_view fresh, bool scan, bool last) {
  const size_t known = held_.size();
  Piece piece;
  if (splitter_) {
    ThoughtSplitter::Parts parts = splitter_->feed(fresh), rest;
    if (last) rest = splitter_->finish();
    piece.thought = std::move(parts.thought) + rest.thought;
    held_ += parts.answer + rest.answer;
  } else {
    held_ += fresh;
  }
  if (scan) {
    const Found found = first_stop(held_, known, *stop_);
    if (found.stop) {
      piece.stop = *found.stop;
      piece.text = held_.substr(0, found.at + (include_stop_ ? found.stop->size() : 0));
      held_.clear();
      return piece;
    }
  }
  // Even without `scan`, because a stop string may begin before min_tokens and end after.
  const size_t keep = last ? 0 : possible_start(held_, *stop_);
  piece.text = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return piece;
}

OutputText::Piece OutputText::push(int32_t token, bool scan) {
  const bool was_open = in_thought();
  const size_t begun = was_open ? splitter_->end_begun() : 0;
  Piece piece = release(text_of(token), scan, false);
  piece.thought_tokens = thought_tokens(was_open, begun, tokenizer_->token_bytes(token).size());
  if (piece.stop || !scan || stop_->empty() || in_thought()) return piece;
  // The detokenizer may hold back more characters. If they complete a stop string, the sequence
  // ends here, which makes them final.
  const std::string text = held_ + detokenizer_.provisional();
  const Found found = first_stop(text, held_.size(), *stop_);
  if (!found.stop) return piece;
  piece.stop = *found.stop;
  piece.text += text.substr(0, found.at + (include_stop_ ? found.stop->size() : 0));
  held_.clear();
  return piece;
}

OutputText::Piece OutputText::finish(bool scan) {
  const int begun = std::exchange(begun_tokens_, 0);
  Piece piece = release(detokenizer_.flush(), scan, true);
  if (in_thought()) piece.thought_tokens = begun;
  return piece;
}

// After a token with so many bytes: a token that only goes on with the end mark is counted when the
// mark turns out to be none.
int OutputText::thought_tokens(bool was_open, size_t begun_before, size_t bytes) {
  if (!was_open) return 0;
  if (!in_thought()) return begun_tokens_ = 0;
  const size_t begun = splitter_->end_begun();
  if (bytes > 0 && begun == begun_before + bytes) {
    ++begun_tokens_;
    return 0;
  }
  return std::exchange(begun_tokens_, 0) + 1;
}

}  // namespace valora::serving
