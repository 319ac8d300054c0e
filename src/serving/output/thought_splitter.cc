#include "serving/output/thought_splitter.h"

#include <algorithm>

namespace valora::serving {
namespace {

using text::ThoughtPlace;

// Length of the longest proper prefix of `mark` that `text` ends with.
size_t begun(std::string_view text, std::string_view mark) {
  size_t length = std::min(text.size(), mark.size() - 1);
  while (!text.ends_with(mark.substr(0, length))) --length;
  return length;
}

size_t without_lines(std::string_view text) { return text.find_last_not_of('\n') + 1; }

}  // namespace

size_t ThoughtSplitter::end_begun() const {
  return place_ == ThoughtPlace::kThought ? begun(held_, marks_->end) : 0;
}

ThoughtSplitter::Parts ThoughtSplitter::feed(std::string_view text) {
  Parts parts;
  held_ += text;
  while (step(parts)) {
  }
  return parts;
}

ThoughtSplitter::Parts ThoughtSplitter::finish() {
  Parts parts;
  (place_ == ThoughtPlace::kThought ? parts.thought : parts.answer).swap(held_);
  return parts;
}

// Decides what it can. False if it needs more text.
bool ThoughtSplitter::step(Parts& parts) {
  if (held_.empty()) return false;
  switch (place_) {
    case ThoughtPlace::kUndecided: return begin();
    case ThoughtPlace::kThought: return opened_ ? close(parts) : open();
    case ThoughtPlace::kAnswer: break;
  }
  if (skips_lines_) held_.erase(0, std::min(held_.find_first_not_of('\n'), held_.size()));
  skips_lines_ = skips_lines_ && held_.empty();
  parts.answer += held_;
  held_.clear();
  return false;
}

// Before the answer: a begin mark, after white space, opens a thought.
bool ThoughtSplitter::begin() {
  const size_t first = std::min(held_.find_first_not_of(" \t\r\n"), held_.size());
  const std::string_view text = std::string_view(held_).substr(first);
  if (text.starts_with(marks_->begin)) {
    place_ = ThoughtPlace::kThought;
    held_.erase(0, first);
    return true;
  }
  if (marks_->begin.starts_with(text)) return false;
  place_ = ThoughtPlace::kAnswer;
  return true;
}

// At the start of the thought: skips line breaks and the begin mark.
bool ThoughtSplitter::open() {
  held_.erase(0, std::min(held_.find_first_not_of('\n'), held_.size()));
  if (held_.starts_with(marks_->begin)) {
    held_.erase(0, marks_->begin.size());
    return true;
  }
  if (marks_->begin.starts_with(held_)) return false;
  opened_ = true;
  return true;
}

bool ThoughtSplitter::close(Parts& parts) {
  const size_t end = held_.find(marks_->end);
  const bool closed = end != std::string::npos;
  const size_t size = closed ? end : held_.size() - begun(held_, marks_->end);
  const size_t known = without_lines(std::string_view(held_).substr(0, size));
  parts.thought.append(held_, 0, known);
  held_.erase(0, closed ? end + marks_->end.size() : known);
  if (!closed) return false;
  place_ = ThoughtPlace::kAnswer;
  skips_lines_ = true;
  return true;
}

}  // namespace valora::serving
