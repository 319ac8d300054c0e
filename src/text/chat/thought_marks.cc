#include "text/chat/thought_marks.h"

#include <cctype>

namespace valora::text {

const ThoughtMarks* find_thought_marks(std::string_view source) {
  const auto has = [source](std::string_view part) { return source.find(part) != source.npos; };
  if (has(kThinkTags.begin) || has(kThinkTags.end) || has("enable_thinking")) return &kThinkTags;
  if (has(kThinkBrackets.begin) || has(kThinkBrackets.end)) return &kThinkBrackets;
  return nullptr;
}

ThoughtPlace place_after(std::string_view prompt, const ThoughtMarks& marks) {
  while (!prompt.empty() && std::isspace(static_cast<unsigned char>(prompt.back())))
    prompt.remove_suffix(1);
  if (prompt.ends_with(marks.end)) return ThoughtPlace::kAnswer;
  return prompt.ends_with(marks.begin) ? ThoughtPlace::kThought : ThoughtPlace::kUndecided;
}

ThoughtPlace place_within(std::string_view answer, const ThoughtMarks& marks) {
  const size_t begin = answer.rfind(marks.begin), end = answer.rfind(marks.end);
  const bool open = begin != answer.npos && (end == answer.npos || end < begin);
  return open ? ThoughtPlace::kThought : ThoughtPlace::kAnswer;
}

}  // namespace valora::text
