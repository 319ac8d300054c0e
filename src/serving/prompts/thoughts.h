// Thoughts that chat templates begin, such as Qwen3.5's, whose conversations end with "<think>".
#pragma once

#include <array>
#include <string_view>

#include "api/constraint.h"
#include "base/result.h"

namespace valora::serving {

struct ThoughtMarks {
  std::string_view begin, end;
};
inline constexpr std::array kThoughtMarks = {ThoughtMarks{"<think>", "</think>"},
                                             ThoughtMarks{"[THINK]", "[/THINK]"}};

// Whether an answer of this form may begin with a thought: text is free before the form, the form
// has the end of the thought in it, or it is of a task whose adapter was trained on such prompts.
bool allows_thought(const AnswerConstraint& form);
// For a form that would hold within the thought.
Error form_within_thought(const AnswerConstraint& form);

}  // namespace valora::serving
