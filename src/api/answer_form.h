// What an adapter answers with, and the text that it writes for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace valora {

// Boxes as text: "<ref>car</ref><box>(12,30),(55,61)</box>", or, without labels, "[12,30,55,61]".
struct BoxNotation {
  int scale = 1000;  // units per side of the picture
  bool labels = true;
};

struct AnswerForm {
  std::vector<std::string> labels;   // of classifications, and of boxes; empty: not known
  std::optional<BoxNotation> boxes;  // none: it answers with no boxes
};

}  // namespace valora
