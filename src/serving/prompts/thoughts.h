// How the answers of a language mark their thoughts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/constraint.h"
#include "api/options.h"
#include "text/chat/chat.h"
#include "text/chat/thought_marks.h"
#include "text/tokenizer.h"

namespace valora::serving {

struct ThoughtSyntax {
  const text::ThoughtMarks* marks = nullptr;
  // Where answers begin to which the prompt leaves it open.
  text::ThoughtPlace undecided = text::ThoughtPlace::kUndecided;
  // The marks where each is one token.
  std::optional<int32_t> begin_token, end_token;
  std::vector<int32_t> end_tokens;  // write the end mark
  // By how many bytes of the end mark are written: the tokens that complete it and go on with text
  // of the answer.
  std::vector<std::vector<int32_t>> overruns;

  bool is_mark(int32_t id) const { return id == begin_token || id == end_token; }
};

// nullopt: answers have no thoughts. kAuto asks the format.
std::optional<ThoughtSyntax> find_thought_syntax(ReasoningParser parser,
                                                 const text::ChatFormat& format,
                                                 const text::Tokenizer& tokenizer);

// Whether answers leave out a token: a special one that is neither wanted nor a mark. syntax: null
// if there are no marks.
bool is_left_out(int32_t token, const ThoughtSyntax* syntax, const text::Tokenizer& tokenizer,
                 bool skip_special_tokens);

// Whether the form describes the whole answer, its thought included, and not what follows it: it
// has the end mark in it, or it is of a task whose adapter writes no thoughts.
bool includes_thought(const AnswerConstraint& form, const text::ThoughtMarks& marks);

}  // namespace valora::serving
