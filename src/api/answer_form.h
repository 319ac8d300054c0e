// The kind of answer that an adapter gives, and the text it writes for it.
#pragma once

#include <optional>

#include "base/box_notation.h"
#include "base/labels.h"

namespace valora {

struct AnswerForm {
  Labels labels;                     // of classifications and boxes; empty: unknown
  std::optional<BoxNotation> boxes;  // absent: the task's answers contain no boxes
};

}  // namespace valora
