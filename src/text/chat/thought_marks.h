// The marks around the thought with which a model begins its answer.
#pragma once

#include <array>
#include <string_view>

namespace valora::text {

struct ThoughtMarks {
  std::string_view begin, end;
};
inline constexpr ThoughtMarks kThinkTags{"<think>", "</think>"};
inline constexpr ThoughtMarks kThinkBrackets{"[THINK]", "[/THINK]"};

// The marks that a chat template writes or reads; null if it knows no thoughts.
const ThoughtMarks* find_thought_marks(std::string_view source);

// Where the answer to a prompt stands.
enum class ThoughtPlace {
  kUndecided,  // it may begin with a thought
  kThought,    // within the thought
  kAnswer,     // after the thought, or there is none
};
// The place of an answer whose prompt, a rendered conversation, ends with this text.
ThoughtPlace place_after(std::string_view prompt, const ThoughtMarks& marks);
// The place of an answer that continues this text of the assistant's.
ThoughtPlace place_within(std::string_view answer, const ThoughtMarks& marks);

}  // namespace valora::text
