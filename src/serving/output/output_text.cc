#include "serving/output/output_text.h"

#include <algorithm>

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
                       StopStrings stop, bool include_stop)
    : detokenizer_(std::move(tokenizer), skip_special_tokens),
      stop_(std::move(stop)),
      include_stop_(include_stop) {}

OutputText::Piece OutputText::release(std::string_view fresh, bool scan, bool last) {
  const size_t known = held_.size();
  held_ += fresh;
  Piece piece;
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
  Piece piece = release(detokenizer_.push(token), scan, false);
  if (piece.stop || !scan || stop_->empty()) return piece;
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
  return release(detokenizer_.flush(), scan, true);
}

}  // namespace valora::serving
