// The kind of answer that an adapter gives, and the text it writes for it.
#pragma once

#include <optional>

#include "base/labels.h"

namespace valora {

// Text format of boxes: "<ref>car</ref><box>(12,30),(55,61)</box>", or "[12,30,55,61]" without
// labels.
struct BoxNotation {
  int scale = 1000;  // units per side of the picture
  bool labels = true;
};

struct AnswerForm {
  Labels labels;                     // of classifications and boxes; empty: unknown
  std::optional<BoxNotation> boxes;  // absent: answers contain no boxes
};

}  // namespace valora
