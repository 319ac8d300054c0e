// The length of the shortest text of a grammar, and parts that no text can contain.
#pragma once

#include <xgrammar/xgrammar.h>

#include <cstdint>
#include <limits>

#include "base/result.h"

namespace valora::grammar {

inline constexpr int64_t kNoAnswer = std::numeric_limits<int64_t>::max();

// In bytes; a lower bound. kNoAnswer: every text of the grammar is endless. kInvalidArgument: the
// root can reach a character class that matches no character, where an answer could not go on.
Result<int64_t> shortest_answer(const xgrammar::Grammar& grammar);

}  // namespace valora::grammar
